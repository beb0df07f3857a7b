package isolates

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

const routesWorker = `
const say = (text) => (request) => new Response(text + " " + JSON.stringify(request.params));
export default {
  routes: {
    "/": new Response("home", { status: 201, headers: { "x-a": "b" } }),
    "/json": Response.json({ a: 1 }),
    "/image": new Blob([new Uint8Array([1, 2, 3])], { type: "image/png" }),
    "/users/:id": { GET: say("get"), DELETE: new Response(null, { status: 204 }), POST: say("post") },
    "/users/me": say("me"),
    "/users/:id/posts/:post": say("post of"),
    "/users/*": say("below users"),
    "/files/:path+": say("file"),
    "/caf\u00e9": say("coffee"),
    "/:any/fixed": say("fixed"),
    "/env": (request, env, ctx) => { ctx.waitUntil(Promise.resolve()); return new Response(env.NAME + request.url); },
    "/throws": () => { throw new Error("thrown"); },
    "/proto/:__proto__": (request) => new Response(Object.keys(request.params) + Object.getPrototypeOf(request.params).constructor.name),
  },
};`

func TestRoutes(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w := worker("routes", routesWorker)
	w.Vars = map[string]string{"NAME": "named "}
	for _, c := range []struct {
		method, path string
		status       int
		body         string
	}{
		{"GET", "/", 201, "home"},
		{"PUT", "/?q=1", 201, "home"},
		{"GET", "/json", 200, `{"a":1}`},
		{"GET", "/image", 200, "\x01\x02\x03"},
		{"GET", "/users/7", 200, `get {"id":"7"}`},
		{"HEAD", "/users/7", 200, `get {"id":"7"}`},
		{"POST", "/users/a%2Fb%20%C3%A9%", 200, `post {"id":"a%2Fb%20%C3%A9%"}`}, // a % that escapes nothing
		{"POST", "/users/a%2Fb%20%C3%A9", 200, `post {"id":"a/b é"}`},
		{"DELETE", "/users/7", 204, ""},
		{"PATCH", "/users/7", 405, "the route does not have this method\n"},
		{"GET", "/users/me", 200, `me {}`},
		{"GET", "/users/me/", 200, `below users {"*":"me/"}`},
		{"GET", "/users/", 200, `below users {"*":""}`},
		{"GET", "/users", 404, "no route has this path\n"},
		{"GET", "/users/1/posts/2", 200, `post of {"id":"1","post":"2"}`},
		{"GET", "/users/1/posts/", 200, `below users {"*":"1/posts/"}`},
		{"GET", "/users/fixed", 200, `get {"id":"fixed"}`},
		{"GET", "/x/fixed", 200, `fixed {"any":"x"}`},
		{"GET", "/files/a/b.txt", 200, `file {"path":"a/b.txt"}`},
		{"GET", "/files/", 404, "no route has this path\n"},
		{"GET", "/caf%C3%A9", 200, `coffee {}`},
		{"GET", "/users/../json", 200, `{"a":1}`},
		{"GET", "/users/%6De", 200, `me {}`}, // as the gateway has it, which decides what is public
		{"GET", "/%75sers/%6d%65", 200, `me {}`},
		{"GET", "/caf%c3%a9", 200, `coffee {}`},
		{"GET", "/%66iles/a%20b/%63", 200, `file {"path":"a b/c"}`},
		{"GET", "/users%2fme", 404, "no route has this path\n"},
		{"GET", "/users/me%00", 200, `get {"id":"me\u0000"}`},
		{"GET", "/users/%2e%2e%2fjson", 200, `get {"id":"../json"}`},
		{"GET", "/%2575sers/me", 404, "no route has this path\n"},
		{"GET", "/env", 200, "named http://x.test/env"},
		{"GET", "/proto/7", 200, "__proto__Object"},
	} {
		o := b.run(w, fetch(c.method, "http://x.test"+c.path, ""))
		require.Nil(t, o.end.Failure, "%s %s", c.method, c.path)
		require.Equal(t, c.status, o.reply.Status, "%s %s", c.method, c.path)
		require.Equal(t, c.body, string(o.reply.Body), "%s %s", c.method, c.path)
		switch headers := fmt.Sprint(o.reply.Headers); c.path {
		case "/":
			require.Equal(t, "[x-a b content-type text/plain;charset=UTF-8]", headers)
		case "/image":
			require.Equal(t, "[content-type image/png]", headers)
		}
		if c.status == 405 {
			require.Contains(t, o.reply.Headers, "GET, DELETE, POST")
		}
	}
	require.Equal(t, events.ReasonException, b.run(w, fetch("GET", "http://x.test/throws", "")).end.Failure.Reason)
}

// A handler answers what no route does, and a Response answers again and again, whatever becomes of its body.
func TestRoutesBesideHandlers(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, other := range []string{
		`export default { routes, fetch: (request) => new Response("other " + request.method) };`,
		`addEventListener("fetch", (e) => e.respondWith(new Response("other " + e.request.method))); export default { routes };`,
	} {
		w := worker("beside", `const kept = new Response("kept"); let n = 0;
			const routes = { "/kept": kept, "/n": () => new Response(String(++n)), "/one": { POST: new Response("one") },
				"/read": async () => new Response(await kept.text()), "/change": () => { kept.headers.set("x", "y"); return new Response("ok"); } };`+other)
		w.Mode = workers.Persistent
		for _, c := range [][3]string{
			{"GET", "/kept", "kept"}, {"GET", "/kept", "kept"}, {"GET", "/nothing", "other GET"}, {"POST", "/one", "one"},
			{"GET", "/one", "other GET"},
			{"GET", "/n", "1"}, {"GET", "/n", "2"}, {"GET", "/change", "ok"}, {"GET", "/kept", "kept"}, {"GET", "/read", "kept"},
		} {
			o := b.run(w, fetch(c[0], "http://x.test"+c[1], ""))
			require.Nil(t, o.end.Failure, c)
			require.Equal(t, c[2], string(o.reply.Body), c)
		}
		require.ErrorContains(t, b.run(w, fetch("GET", "http://x.test/kept", "")).end.Failure,
			"the body has been read already")
	}
}

// Apps of some routers have a property of this name, which is no object of paths.
func TestRoutesOfOthers(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, routes := range []string{`[{ path: "/", method: "GET" }]`, "new Map()", "null", "7", `"x"`, "() => 1",
		"new (class Table { x = 1 })()"} {
		o := b.run(worker("app", `export default { routes: `+routes+`, fetch: () => new Response("app") };`),
			fetch("GET", "http://x.test/", ""))
		require.Nil(t, o.end.Failure, routes)
		require.Equal(t, "app", string(o.reply.Body), routes)
	}
}

func TestRoutesThatAreRefused(t *testing.T) {
	t.Parallel()
	c, err := OpenChecker(nil, CheckConfig{})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	const f = "() => new Response()"
	for routes, want := range map[string]string{
		`"users": ` + f:                           `exception: TypeError: routes: 'users': a path begins with / and has no ? or #`,
		`"/a?b": ` + f:                            `routes: '/a?b': a path begins with / and has no ? or #`,
		`"/a#": ` + f:                             `a path begins with / and has no ? or #`,
		`"/a*": ` + f:                             `routes: '/a*': * is the whole last segment`,
		`"/*/a": ` + f:                            `* is the whole last segment`,
		`"/:": ` + f:                              `a parameter is a colon and a name of letters, digits and _`,
		`"/:a-b": ` + f:                           `a parameter is a colon and a name of letters, digits and _`,
		`"/:a(\\d+)": ` + f:                       `a parameter is a colon and a name of letters, digits and _`,
		`"/:a?": ` + f:                            `a path begins with / and has no ? or #`,
		`"/:a/:a": ` + f:                          `routes: '/:a/:a': the name a is there twice`,
		`"/:a+/b": ` + f:                          `:a+ is the last segment`,
		`"/:a": ` + f + `, "/:b": ` + f:           `routes: '/:b': it matches the paths of /:a`,
		`"/a": ` + f + `, "/%61": ` + f:           `routes: '/%61': it is the path of /a`,
		`"/a": ` + f + `, "/x/../a": ` + f:        `routes: '/x/../a': it is the path of /a`,
		`"/": 7`:                                  `routes: '/': 7 is no function, Response or Blob, nor an object of them by method`,
		`"/": undefined`:                          `undefined is no function`,
		`"/": {}`:                                 `is no function, Response or Blob, nor an object of them by method`,
		`"/": { get: ` + f + ` }`:                 `'get' is no method like GET with a function, Response or Blob`,
		`"/": { GET: 7 }`:                         `'GET' is no method like GET with a function, Response or Blob`,
		`"/": Response.error()`:                   `the Response has a stream, was read, or is an error`,
		`"/": new Response(new ReadableStream())`: `the Response has a stream, was read, or is an error`,
		`get "/"() { throw new Error("of a getter") }`: `of a getter`,
	} {
		_, err := c.Check(t.Context(), worker("refused", `export default { routes: { `+routes+` } };`))
		require.ErrorContains(t, err, want, routes)
		require.ErrorAs(t, err, new(*events.Failure), routes)
	}
	kinds, err := c.Check(t.Context(), worker("fine", `export default { routes: {} };`))
	require.NoError(t, err)
	require.Equal(t, []events.Kind{events.Fetch}, kinds.Kinds)
}

// What handler code does to the built-in objects changes no route, and what it gets from its routes is its own.
func TestRoutesOfHostileModules(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w := worker("hostile", `
		const seen = [];
		const spy = (name) => function (...args) { seen.push(name); throw new Error(name); };
		Map.prototype.get = spy("get"); Map.prototype.set = spy("set"); Array.prototype.sort = spy("sort"); Array.prototype.push = spy("push");
		Object.keys = spy("keys"); String.prototype.startsWith = spy("startsWith"); globalThis.decodeURIComponent = spy("decode");
		Object.defineProperty(Object.prototype, "params", { set: spy("params"), get: spy("params"), configurable: true });
		Object.defineProperty(Object.prototype, "kind", { set: spy("kind"), configurable: true });
		Object.defineProperty(Object.prototype, "0", { set: spy("0"), configurable: true });
		let reads = 0;
		export default { get routes() { reads++; return {
			"/a/:b": (request) => new Response(reads + request.params.b + Object.keys.name + seen.length),
			"/`+strings.Repeat(":x/", 1)+`y/*": (request) => new Response("deep"),
		}; } };`)
	o := b.run(w, fetch("GET", "http://x.test/a/%62", ""))
	require.Nil(t, o.end.Failure)
	require.Equal(t, "1b0", string(o.reply.Body))
}
