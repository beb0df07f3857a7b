package e2e

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/env/assetstore"
	"github.com/pinwheel-run/pinwheel/internal/operate/cli"
)

// project writes files into a new directory, or the given one.
func project(t *testing.T, dir string, files map[string]string) string {
	t.Helper()
	if dir == "" {
		dir = filepath.Join(t.TempDir(), "site")
	}
	for path, text := range files {
		full := filepath.Join(dir, path)
		require.NoError(t, os.MkdirAll(filepath.Dir(full), 0o700))
		require.NoError(t, os.WriteFile(full, []byte(text), 0o600))
	}
	return dir
}

// deployDir deploys a directory with the command, and returns what it printed.
func (h *testFleet) deployDir(dir string, args ...string) string {
	h.t.Helper()
	var out bytes.Buffer
	cfg := h.fleet.Config()
	cfg.NatsURL = h.fleet.URL()
	code := cli.MainWith(cfg, append([]string{"deploy", dir, "--owner", "acme"}, args...), strings.NewReader(""), &out,
		&out)
	require.Zero(h.t, code, out.String())
	return out.String()
}

func (h *testFleet) fileKeys() (keys []string) {
	h.t.Helper()
	kv, err := h.js.KeyValue(h.t.Context(), assetstore.Bucket)
	require.NoError(h.t, err)
	list, err := kv.ListKeys(h.t.Context(), jetstream.IgnoreDeletes())
	require.NoError(h.t, err)
	for key := range list.Keys() {
		keys = append(keys, key)
	}
	return keys
}

// A directory with pages is a worker. One with code beside them answers what no file does.
func TestHTTPFiles(t *testing.T) {
	t.Parallel()
	h := openFleet(t, withWeb)
	w := openWeb(t, h.fleet.HTTPAddr())
	page := strings.Repeat("<p>home</p>", 1000)
	dir := project(t, "", map[string]string{
		"pinwheel.json": `{"assets": {"directory": ".", "notFound": "404-page"}}`, "index.html": page, "404.html": "lost",
		"_redirects": "/old/* /:splat 301", ".env": "KEY=secret",
	})
	out := h.deployDir(dir)
	require.Contains(t, out, "2 files")
	resp, body := w.ask("GET", "acme/site", "/", "")
	require.Equal(t, []any{200, page, "text/html; charset=utf-8"},
		[]any{resp.StatusCode, body, resp.Header.Get("Content-Type")})
	resp, body = w.ask("GET", "acme/site", "/", "", "Accept-Encoding", "gzip, br")
	require.Equal(t, "br", resp.Header.Get("Content-Encoding"))
	require.Less(t, len(body), len(page)/10)
	for _, path := range []string{"/.env", "/pinwheel.json", "/_redirects", "/nowhere"} {
		resp, body = w.ask("GET", "acme/site", path, "")
		require.Equal(t, []any{404, "lost"}, []any{resp.StatusCode, body}, path)
	}
	resp, _ = w.ask("POST", "acme/site", "/", "x")
	require.Equal(t, 405, resp.StatusCode)

	app := project(t, "", map[string]string{
		"wrangler.jsonc":  `{"name": "app", "main": "src/index.ts", "assets": {"directory": "dist", "not_found_handling": "single-page-application", "run_worker_first": ["/dist/*"]}}`,
		"src/index.ts":    `export default { fetch: (r: Request) => Response.json({path: new URL(r.url).pathname}) }`,
		"dist/index.html": "app", "dist/main-1a2b3c4d.js": "one", "dist/dist/x.js": "hidden",
	})
	h.deployDir(app)
	_, body = w.ask("GET", "acme/app", "/main-1a2b3c4d.js", "")
	require.Equal(t, "one", body)
	_, body = w.ask("GET", "acme/app", "/deep/link", "", "Sec-Fetch-Mode", "navigate")
	require.Equal(t, "app", body)
	for _, path := range []string{"/api/x", "/dist/x.js"} {
		_, body = w.ask("GET", "acme/app", path, "")
		require.Equal(t, `{"path":"`+path+`"}`, body)
	}

	// The page of a version finds its files while another version runs.
	require.NoError(t, os.Remove(filepath.Join(app, "dist/main-1a2b3c4d.js")))
	project(t, app, map[string]string{"dist/main-2b3c4d5e.js": "two"})
	h.deployDir(app)
	for path, want := range map[string]string{"/main-1a2b3c4d.js": "one", "/main-2b3c4d5e.js": "two"} {
		resp, body = w.ask("GET", "acme/app", path, "")
		require.Equal(t, []any{200, want}, []any{resp.StatusCode, body})
	}

	// Files go with the last version that has them.
	require.NotEmpty(t, h.fileKeys())
	for _, name := range []string{"site", "app"} {
		require.NoError(t, h.fleet.Workers().Remove(t.Context(), "acme", name))
	}
	require.Equal(t, []string{"acme.deploys"}, h.fileKeys())
	require.Eventually(t, func() bool {
		resp, _ := w.ask("GET", "acme/app", "/main-2b3c4d5e.js", "")
		return resp.StatusCode == 404
	}, patience, tick)
}

// A handler reads its worker's files, in every kind of event. It gets those of its own version, and of no other owner.
func TestHandlersReadFiles(t *testing.T) {
	t.Parallel()
	h := openFleet(t, withWeb)
	w := openWeb(t, h.fleet.HTTPAddr())
	dir := project(t, "", map[string]string{
		"wrangler.jsonc": `{"name": "app", "main": "app.ts", "assets": {"directory": "dist", "binding": "ASSETS", "run_worker_first": ["/*"]}}`,
		"app.ts": `const read = async (env: any, path: string) => { const r = await env.ASSETS.fetch("https://any.example" + path); return r.status + " " + await r.text(); };
			export default {
				async fetch(request: Request, env: any) { const r = await env.ASSETS.fetch(request); const own = new Response(r.body, r); own.headers.set("x-by", "handler"); return own; },
				task: (event: any, env: any) => Promise.all(event.payload.map((path: string) => read(env, path))),
				scheduled: (event: any, env: any) => read(env, "/one.txt"),
			}`,
		"dist/index.html": "home", "dist/about.html": "about", "dist/one.txt": "first",
		"dist/big.bin": strings.Repeat("0123456789", 200_000), "dist/_headers": "/one.txt\n  X-Own: yes\n",
	})
	h.deployDir(dir)
	resp, body := w.ask("GET", "acme/app", "/one.txt", "", "Accept-Encoding", "gzip, br")
	require.Equal(t, []any{200, "first", "handler", "yes", "text/plain; charset=utf-8"},
		[]any{resp.StatusCode, body, resp.Header.Get("X-By"), resp.Header.Get("X-Own"), resp.Header.Get("Content-Type")})
	resp, _ = w.ask("GET", "acme/app", "/one.txt", "", "If-None-Match", resp.Header.Get("Etag"))
	require.Equal(t, 304, resp.StatusCode)
	resp, body = w.ask("GET", "acme/app", "/big.bin", "", "Range", "bytes=1999990-")
	require.Equal(t, []any{206, "0123456789"}, []any{resp.StatusCode, body})
	resp, body = w.ask("GET", "acme/app", "/big.bin", "")
	require.Equal(t, []any{200, 2_000_000}, []any{resp.StatusCode, len(body)})
	resp, body = w.ask("GET", "acme/app", "/about.html", "") // the client follows the redirect
	require.Equal(t, []any{200, "about", "/about", "handler"}, []any{resp.StatusCode, body, resp.Request.URL.Path,
		resp.Header.Get("X-By")})
	resp, _ = w.ask("POST", "acme/app", "/one.txt", "x")
	require.Equal(t, []any{405, "handler"}, []any{resp.StatusCode, resp.Header.Get("X-By")})

	call := func(paths string) string {
		r := h.reply(h.send(events.Task, "acme/app", paths))
		require.Nil(t, r.Failure)
		return string(r.Body)
	}
	require.Contains(t, call(`["/one.txt", "/about.html", "/gone"]`), `["200 first","200 about","404 there is no file at this path\n"]`)

	r := h.reply(h.send(events.Scheduled, "acme/app", "{}"))
	require.Nil(t, r.Failure)
	require.Contains(t, string(r.Body), "200 first")

	// Another version has only its own files.
	require.NoError(t, os.Remove(filepath.Join(dir, "dist/one.txt")))
	project(t, dir, map[string]string{"dist/two.txt": "second"})
	h.deployDir(dir)
	require.Contains(t, call(`["/one.txt", "/two.txt"]`), `["404 there is no file at this path\n","200 second"]`)
}

// Files need the token of their worker, as its handler does. So do those that only an older version has.
func TestHTTPFilesWithAToken(t *testing.T) {
	t.Parallel()
	key, _ := newKey(t)
	h := openFleet(t, withWeb, withKey(key))
	w := openWeb(t, h.fleet.HTTPAddr())
	h.secret("acme", "TOKEN", "first")
	dir := project(t, "", map[string]string{
		"pinwheel.json":   `{"secrets": ["TOKEN"], "http": {"auth": "TOKEN", "public": {"GET": ["/public/*"]}}, "assets": {"directory": "dist"}}`,
		"dist/private.js": "private", "dist/public/a.js": "public",
	})
	h.deployDir(dir)
	for path, status := range map[string]int{"/private.js": 401, "/public/a.js": 200, "/public/%2e%2e/private.js": 401,
		"/public/..%2fprivate.js": 401} {
		resp, _ := w.ask("GET", "acme/site", path, "")
		require.Equal(t, status, resp.StatusCode, path)
	}
	_, body := w.ask("GET", "acme/site", "/private.js", "", "Authorization", "Bearer first")
	require.Equal(t, "private", body)
	require.NoError(t, os.Remove(filepath.Join(dir, "dist/private.js")))
	project(t, dir, map[string]string{"pinwheel.json": `{"assets": {"directory": "dist"}}`})
	h.deployDir(dir)
	require.Eventually(t, func() bool {
		resp, _ := w.ask("GET", "acme/site", "/private.js", "")
		return resp.StatusCode == 404
	}, patience, tick, "the version that is public now does not open the one that was not")
}

// Files of a directory are routes. pre and post are around those beside them, and the source answers the rest.
func TestHTTPFileRoutes(t *testing.T) {
	t.Parallel()
	h := openFleet(t, withWeb)
	w := openWeb(t, h.fleet.HTTPAddr())
	dir := project(t, "", map[string]string{
		"pinwheel.json":          `{"fileRoutes": "api", "main": "main.ts", "vars": {"WHO": "Ada"}}`,
		"main.ts":                `export default { fetch: (request: Request) => new Response("main " + new URL(request.url).pathname), task: () => 7 }`,
		"lib/text.ts":            `export const say = (text: string) => new Response(text);`,
		"api/index.ts":           `import { say } from "../lib/text"; export default (request: Request, env: any) => say("home of " + env.WHO);`,
		"api/users/[id].ts":      `export const GET = (request: any) => new Response("user " + request.params.id); export async function POST() { throw new Error("no") }`,
		"api/users/me.js":        `export default { fetch() { return new Response("me"); } }`,
		"api/users/pre.js":       `export default (request) => request.headers.has("x-stop") ? new Response("stopped", { status: 403 }) : undefined;`,
		"api/users/post.ts":      `export default (request: Request, response: Response) => { response.headers.set("x-post", "yes"); };`,
		"api/users/deep/[x].ts":  `export default () => new Response("deep")`,
		"api/files/[...path].ts": `export default (request: any) => new Response(request.params.path)`,
		"api/_part.ts":           `not a module`,
		"api/old.ts":             "// @enabled false\n// @mode pinned\nexport default () => new Response(\"old\")",
	})
	out := h.deployDir(dir)
	require.Contains(t, out, "_part.ts has no route")
	require.Contains(t, out, "old.ts is left out: // @enabled false")
	for _, c := range []struct {
		method, path, want string
		status             int
		post               bool
		header             []string
	}{
		{"GET", "/", "home of Ada", 200, false, nil},
		{"GET", "/users/7%2F8", "user 7/8", 200, true, nil},
		{"HEAD", "/users/7", "", 200, true, nil},
		{"GET", "/users/me", "me", 200, true, nil},
		{"GET", "/users/me", "stopped", 403, true, []string{"x-stop", "1"}},
		{"POST", "/users/7", "exception\n", 500, false, nil},
		{"DELETE", "/users/7", "main /users/7", 200, false, nil},
		{"GET", "/users/deep/1", "deep", 200, false, []string{"x-stop", "1"}},
		{"GET", "/files/a/b.txt", "a/b.txt", 200, false, nil},
		{"GET", "/files", "main /files", 200, false, nil},
		{"GET", "/old", "main /old", 200, false, nil},
	} {
		resp, text := w.ask(c.method, "acme/site", c.path, "", c.header...)
		require.Equal(t, c.status, resp.StatusCode, c.path)
		require.Equal(t, c.want, text, c.path)
		require.Equal(t, c.post, resp.Header.Get("X-Post") == "yes", c.path)
	}

	// Faults have their place.
	for files, want := range map[string]string{
		"api/users/[me].ts|export default () => new Response()":          `routes: '/users/:me': it matches the paths of /users/:id`,
		"api/none.ts|export const get = 1":                               "api/none.ts exports no function: default, or GET, POST and other methods",
		"api/both.ts|export default () => 1; export const GET = () => 1": "api/both.ts exports default and functions of methods: keep one of them",
		"api/bad.ts|export default (":                                    "api/bad.ts:1:17: ",
		"api/[a-b].ts|export default () => 1":                            `the name "[a-b]" is none of a route`,
		"api/users/me.ts|export default () => 1":                         "users/me.ts: users/me.js is the same: keep one of them",
		"api/users/deep/pre.ts|export const x = 1":                       "pre beside api/users/deep/[x].ts exports no function as default",
		"api/off.ts|// @enabled no":                                      `api/off.ts:1:13: @enabled is "no": it is true or false`,
		"pinwheel.json|{\"fileRoutes\": \"../x\"}":                       `pinwheel.json:1:2: fileRoutes is "../x": it leads out of the directory`,
		"pinwheel.json|{\"fileRoutes\": \"gone\"}":                       `fileRoutes is "gone": there is no such directory`,
	} {
		path, text, _ := strings.Cut(files, "|")
		before, err := os.ReadFile(filepath.Join(dir, path))
		project(t, dir, map[string]string{path: text})
		var out bytes.Buffer
		cfg := h.fleet.Config()
		cfg.NatsURL = h.fleet.URL()
		require.NotZero(t, cli.MainWith(cfg, []string{"deploy", dir, "--owner", "acme"}, strings.NewReader(""), &out, &out),
			files)
		require.Contains(t, out.String(), want, files)
		if err == nil {
			project(t, dir, map[string]string{path: string(before)})
			continue
		}
		require.NoError(t, os.Remove(filepath.Join(dir, path)))
	}
}
