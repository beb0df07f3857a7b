package isolates

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/isolates/js"
)

// answer runs a fetch event and decodes its answer.
func (c *isolationBench) answer(w *workers.Worker, token string, doc any) {
	c.t.Helper()
	o := c.run(w, c.event("POST", token, false))
	require.Nil(c.t, o.end.Failure, "%v", c.lines())
	require.NoError(c.t, json.Unmarshal(o.reply.Body, doc), "%s", o.reply.Body)
}

func unchanged(*workers.Worker) {}

// A worker cannot reach any object of the runtime, nor its entry function, nor anything by frames of stacks.
func TestControlObjectsAreOutOfReach(t *testing.T) {
	t.Parallel()
	for _, m := range modes() {
		t.Run(string(m.mode), func(t *testing.T) {
			c := newIsolationBench(t)
			w := c.worker(m, parts(t, "reach"), unchanged)
			for _, token := range []string{"one", "two"} {
				var doc struct {
					Found    []string
					N, Calls int
				}
				c.answer(w, token, &doc)
				require.Empty(t, doc.Found)
				require.Greater(t, doc.N, 1000, "looked around")
				require.Greater(t, doc.Calls, 20, "saw frames")
			}
		})
	}
}

// A worker that makes a trap of every property, every name that the runtime uses and every parent of a class sees
// nothing of the runtime's work. The runtime works as before.
func TestTrapsSeeNothing(t *testing.T) {
	t.Parallel()
	files, err := js.Files()
	require.NoError(t, err)
	var names []string
	for _, f := range files {
		names = append(names, regexp.MustCompile(`[A-Za-z_$][\w$]*`).FindAllString(f.Text, -1)...)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	require.Greater(t, len(names), 2000)
	code := parts(t, "exercise", "traps")
	for _, m := range modes() {
		if !m.keeps {
			continue // the traps would be gone before they are used
		}
		t.Run(string(m.mode), func(t *testing.T) {
			c := newIsolationBench(t)
			own, list := asJSON(t, walkPart(t)+code), asJSON(t, names)
			w := c.worker(m, fmt.Sprintf("const NAMES = %s, OWN = %s;\n%s", list, own, code), unchanged)
			var before []string
			c.answer(w, "one", &before)
			require.Empty(t, before, "what of the exercise does not work")
			var doc struct {
				Said, Found             []string
				Looked, Called, Parents int
			}
			c.answer(w, "two", &doc)
			require.Empty(t, doc.Said, "what of the exercise does not work with traps")
			require.Empty(t, doc.Found)
			require.Greater(t, doc.Looked, 100, "times the runtime read what handler code can change: mostly members of options")
			require.Greater(t, doc.Called, 50, "times the runtime or V8 called what handler code had changed: mostly then()")
			require.Greater(t, doc.Parents, 30, "classes with another parent")
		})
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	require.NoError(t, err)
	return string(text)
}

// Things kept from an event that is over can do nothing, neither for its own output nor for the next event.
func TestOldEventsCannotSpeak(t *testing.T) {
	t.Parallel()
	for _, m := range modes() {
		t.Run(string(m.mode), func(t *testing.T) {
			c := newIsolationBench(t)
			w := c.worker(m, `
				let old;
				export default { async task(event, env, ctx) {
					const said = [], tried = old !== undefined;
					if (tried) {
						for (const f of [() => old.event.retry({ delaySeconds: 9 }), () => old.event.noRetry(), () => old.ctx.waitUntil(sleep(60000)), () => old.resolve({ success: false, error: "old" }), () => old.reject(new Error("old")), () => old.send("x")]) {
							try { await f(); said.push(String(f)) } catch (e) { said.push(e.name) }
						}
					}
					old = { event, ctx, ...Promise.withResolvers(), send: env.JOBS.send.bind(env.JOBS) };
					ctx.waitUntil(old.promise.catch(() => {}));
					setTimeout(old.resolve, 2);
					return { tried, said, id: event.id, attempt: event.attempt };
				} }`, unchanged)
			for i, token := range []string{"one", "two"} {
				e := task("{}")
				e.ID = token
				o := c.run(w, e)
				require.Nil(t, o.end.Failure, "%v", c.lines())
				require.False(t, o.end.Retry)
				require.False(t, o.end.NoRetry)
				require.Zero(t, o.end.RetryDelay)
				var doc struct {
					Data struct {
						Tried bool
						Said  []string
						ID    string
					}
				}
				require.NoError(t, json.Unmarshal(o.reply.Body, &doc))
				require.Equal(t, token, doc.Data.ID)
				require.Equal(t, i > 0 && m.keeps, doc.Data.Tried)
				if doc.Data.Tried {
					require.Equal(t, "InvalidStateError", doc.Data.Said[2])
				}
			}
		})
	}
}

// Ids of timers and requests are small numbers. Knowing those of another event is of no use.
func TestIdsAreOfNoUseToOthers(t *testing.T) {
	t.Parallel()
	for _, m := range modes() {
		for _, r := range relations() {
			if r.same && m.shares {
				continue // events of one context share its timers, as those of a page do
			}
			t.Run(string(m.mode)+"/"+r.name, func(t *testing.T) {
				c := newIsolationBench(t)
				code := `export default { async fetch(request) {
					const token = request.headers.get("token");
					if (request.method === "PUT") {
						const [held] = await Promise.all([fetch(BASE + "/hold?" + token).then((r) => r.text()), sleep(20)]);
						return new Response(held);
					}
					for (let i = -5; i < 5000; i++) { clearTimeout(i); clearInterval(i) }
					for (let i = 0; i < 40; i++) { const a = new AbortController(); fetch(BASE + "/now", { signal: a.signal }).catch(() => {}); a.abort() }
					return Response.json("cleared");
				} }`
				first := c.start(c.worker(m, code, unchanged), c.event("PUT", "one", false))
				first.wait(t, c.holds)
				var cleared string
				c.answer(c.worker(m, code, r.to), "two", &cleared)
				close(c.release)
				first.wait(t, first.ended)
				require.Nil(t, first.end.Failure)
				require.Equal(t, "one", string(first.reply.Body))
			})
		}
	}
}

// Objects that look like the runtime's are ordinary answers.
func TestLookAlikesAreNothing(t *testing.T) {
	t.Parallel()
	c := newIsolationBench(t)
	for name, value := range map[string]string{
		"run":      `{ id: 2, kind: 1, answered: false, over: true, responded: true, waiting: -1, malformed: null }`,
		"response": `{ status: 200, headers: new Headers(), body: "x", ok: true, [Symbol.toStringTag]: "Response", __proto__: null }`,
		"state":    `Object.create(Response.prototype, { status: { value: 200 } })`,
		"thenable": `{ then(f) { f({ id: 1, op: 2, status: 200, drained: true, source: "x" }) } }`,
		"twice":    `{ then(f, no) { f({ run: 1 }); f(new Response("twice")); no(1); return { then: f } } }`,
		"proxy":    `new Proxy(new Response("x"), {})`,
	} {
		for _, m := range modes() {
			w := c.worker(m, `export default { fetch: () => (`+value+`) }`, unchanged)
			o := c.run(w, fetch("GET", "http://x/", ""))
			require.NotNil(t, o.end.Failure, name)
			require.Nil(t, o.reply, name)
			o = c.run(c.worker(m, `export default { fetch: () => new Response("ok") }`, unchanged), fetch("GET", "http://x/", ""))
			require.Equal(t, "ok", string(o.reply.Body))
		}
	}
}

// Stacks that are reported name the author's files and nothing else.
func TestStacksNameOnlyTheAuthorsFiles(t *testing.T) {
	t.Parallel()
	foreign := regexp.MustCompile(`pinwheel:|\.go\b|\.cc\b|/[a-z]+/|neighbour|runtime\.`)
	b := newBench(t)
	b.cpu = ample
	b.run(worker("neighbour", `export default { fetch: () => new Response("ok") }`), fetch("GET", "http://x/", ""))
	for name, body := range map[string]string{
		"plain":    `throw new Error("x")`,
		"listener": `const e = new EventTarget(); e.addEventListener("x", () => { throw new Error("x") }); e.dispatchEvent(new Event("x")); throw new TypeError("y")`,
		"timer":    `await new Promise((_, no) => setTimeout(() => { reportError(new Error("timer")); no(new Error("x")) }, 1))`,
		"stream":   `await new Response(new ReadableStream({ pull() { throw new Error("x") } })).text()`,
		"headers":  `new Headers({ *[Symbol.iterator]() { throw new Error("x") } })`,
		"clone":    `structuredClone({ get a() { throw new Error("x") } })`,
		"fetch":    `await fetch("http://127.0.0.1:1/")`,
		"queue":    `await env.JOBS.send(1n)`,
		"limit":    `new Uint8Array(2 ** 33)`,
		"url":      `new URL("nowhere")`,
		"trace":    `console.trace("here"); console.error(new Error("logged")); Promise.reject(new Error("lost")); throw new DOMException("x")`,
		"deep":     `const f = () => f(); f()`,
		"load":     ``,
	} {
		w := worker("author", `export default { async fetch(request, env) { `+body+` } }`)
		if name == "load" {
			w.Code = `throw new Error("at load")`
		}
		w.Queues = map[string]string{"JOBS": "jobs"}
		o := b.run(w, fetch("GET", "http://x/", ""))
		require.NotNil(t, o.end.Failure, name)
		require.NotRegexp(t, foreign, strings.ReplaceAll(o.end.Failure.Message+o.end.Failure.Stack, "http://127.0.0.1:1/",
			""), name)
		if name != "fetch" && name != "url" {
			require.Contains(t, o.end.Failure.Stack, "author.js", "%s: %+v", name, o.end.Failure)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	require.NotEmpty(t, b.logs)
	for _, l := range b.logs {
		require.NotRegexp(t, foreign, l.Text+l.Stack)
	}
}
