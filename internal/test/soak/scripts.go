// Package soak has the scripts of the workers of soak tests: of isolates, and of cells.
package soak

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/pinwheel-run/pinwheel/events/workers"
)

// Script is the code of a worker of the soak, as the body of an async function of token, env, ctx and attempt.
type Script struct {
	Name   string
	Body   string
	Module string   // instead of Body: the whole module
	Said   string   // what Body returns
	Ends   []string // how an attempt may end: ok or a reason; ok alone when empty
	Lines  int      // of output, when it ends ok
	Size   int      // of the reply, of which only the length is checked
	Fails  int      // attempts that fail before one ends ok; it is a task
}

// prelude makes a module of a script. mine says which event of another worker this context has seen, if any.
const prelude = `
const sleep = (ms) => new Promise((done) => setTimeout(done, ms)), ask = (path, token) => fetch(BASE + path + "?" + encodeURIComponent(token)).then((r) => r.text());
const seen = [];
const mine = (env, token) => { if (seen.length < 50) seen.push(token); return seen.find((t) => !t.startsWith(env.WHO + "#")) ?? "" };
const script = async (token, env, ctx, attempt) => { BODY };
const handle = async (token, env, ctx, attempt) => ({ who: env.WHO, token, foreign: mine(env, token), said: await script(token, env, ctx, attempt) });
export default {
	async fetch(request, env, ctx) { const x = await handle(await request.text(), env, ctx, 1); return x.said instanceof Response ? x.said : Response.json(x) },
	async task(event, env, ctx) { return handle(await event.text(), env, ctx, event.attempt) },
};`

// Good are scripts that always end ok.
func Good() []Script {
	return []Script{
		{Name: "echo", Body: `return "echo"`, Said: "echo"},
		{Name: "timers", Said: "timers", Body: `let n = 0; await Promise.all([1, 2, 3].map((i) => sleep(i).then(() => n++)));
			const i = setInterval(() => n++, 1); await sleep(4); clearInterval(i); return n >= 4 ? "timers" : "only " + n`},
		{Name: "wait-until", Said: "early", Lines: 2, Body: `ctx.waitUntil(sleep(2).then(() => { console.log("TOKEN " + token); ctx.waitUntil(sleep(1).then(() => console.log("TOKEN " + token))) })); return "early"`},
		{Name: "fetch", Said: "fetched", Body: `const r = await Promise.all([1, 2, 3].map((i) => ask("/echo", i + token))); return r.every((x, i) => x === i + 1 + token) ? "fetched" : r.join()`},
		{Name: "body", Said: "262144", Body: `return String((await (await fetch(BASE + "/big")).arrayBuffer()).byteLength)`},
		{Name: "abort", Said: "TimeoutError", Body: `try { await fetch(BASE + "/slow", { signal: AbortSignal.timeout(3) }); return "not aborted" } catch (e) { return e.name }`},
		{Name: "abandon", Said: "gone", Body: `fetch(BASE + "/slow"); ask("/echo", token); setTimeout(() => console.log("TOKEN of the past"), 1); return "gone"`},
		{Name: "stream", Said: "streamed",
			Body: `const s = new ReadableStream({ async pull(c) { await sleep(1); c.enqueue(token); c.close() } });
			const text = await new Response(s.pipeThrough(new TransformStream({ transform(x, c) { c.enqueue(new TextEncoder().encode(x + "!")) } }))).text(); return text === token + "!" ? "streamed" : text`},
		{Name: "send", Said: "sent", Body: `await Promise.all([env.JOBS.send(token), env.JOBS.send(token)]); return "sent"`},
		{Name: "hash", Said: "32", Body: `const d = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(token)); return String(structuredClone({ n: d.byteLength }).n)`},
		{Name: "log", Said: "logged", Lines: 5, Body: `for (let i = 0; i < 5; i++) console.log("TOKEN " + token); console.group("g"); return "logged"`},
		{Name: "buffers", Said: "true", Body: `const b = new Uint8Array(1 << 20).fill(token.length); return String(b[1 << 19] === token.length)`},
		{Name: "retry", Said: "third", Fails: 2, Body: `if (attempt < 3) { await sleep(1); throw new Error("attempt " + attempt) } return "third"`},
	}
}

// Bad are common mistakes.
func Bad() []Script {
	return []Script{
		{Name: "throws", Body: `throw new TypeError(token)`, Ends: []string{"exception"}},
		{Name: "rejects", Body: `await sleep(2); await Promise.reject(token)`, Ends: []string{"exception"}},
		{Name: "hangs", Body: `await new Promise(() => {})`, Ends: []string{"timeout"}},
		{Name: "waits", Body: `await new Promise(() => setInterval(() => {}, 10))`, Ends: []string{"timeout"}},
		{Name: "wait-until-endless", Body: `ctx.waitUntil(new Promise(() => setInterval(() => {}, 20))); return "cut"`, Said: "cut"},
		{Name: "huge-reply", Body: `return new Response("x".repeat(4 << 20))`, Size: 4 << 20},
		{Name: "huge-buffer", Body: `return new Response(new Uint8Array(70 << 20))`, Ends: []string{"exception"}},
		{Name: "storm", Body: `for (let i = 0; i < 1500; i++) Promise.reject(new Error("TOKEN " + token)); return "storm"`, Said: "storm"},
		{Name: "many-timers", Body: `for (;;) setTimeout(() => {}, 1e6)`, Ends: []string{"cpu", "memory", "exception"}},
		{Name: "uncaught", Body: `setTimeout(() => { throw new Error("TOKEN " + token) }, 1); await sleep(3); return "on"`, Said: "on", Lines: 1},
		{Name: "load-throws", Module: `throw new Error("at load")`, Ends: []string{"exception"}},
		{Name: "load-hangs", Module: `await new Promise(() => {})`, Ends: []string{"timeout"}},
		{Name: "syntax", Module: `export default {`, Ends: []string{"exception"}},
		{Name: "not-a-response", Module: `export default { fetch: () => 5, task: () => 5n }`, Ends: []string{"exception"}},
		{Name: "no-handler", Module: `export default {}`, Ends: []string{"no-handler"}},
	}
}

// Hostile are scripts that try to take more than allowed. None of them can make V8 give up a thread.
func Hostile() []Script {
	cpu, memory := []string{"cpu"}, []string{"memory"}
	return []Script{
		{Name: "loop", Body: `for (;;);`, Ends: cpu},
		{Name: "loop-later", Body: `await sleep(1); for (;;);`, Ends: cpu},
		{Name: "loop-after", Body: `ctx.waitUntil(sleep(1).then(() => { for (;;); })); return "replied"`, Said: "replied"},
		// each promise waits for the next,
		{Name: "microtasks", Body: `const f = () => Promise.resolve().then(f); await f()`, Ends: []string{"cpu", "memory"}},
		{Name: "regexp", Body: `/(a+)+$/.test("a".repeat(40) + "b")`, Ends: cpu},
		{Name: "arrays", Body: `const keep = []; for (;;) keep.push(new Array(1000).fill(1.5))`, Ends: memory},
		{Name: "strings", Body: `const keep = []; for (let i = 0; ; i++) keep.push("x".repeat(1000) + i)`, Ends: []string{"memory", "cpu"}},
		{Name: "closures", Body: `const keep = []; for (let i = 0; ; i++) keep.push(() => i)`, Ends: []string{"memory", "cpu"}},
		{Name: "promises", Body: `const keep = []; for (;;) { keep.push(new Promise(() => {})); if (keep.length % 1000 === 0) await 1 }`, Ends: []string{"memory", "cpu"}},
		{Name: "buffers-endless", Body: `const keep = []; for (;;) keep.push(new Uint8Array(1 << 20))`, Ends: []string{"exception", "memory"}},
		{Name: "resizable", Body: `const keep = []; for (;;) { const b = new ArrayBuffer(1, { maxByteLength: 1 << 20 }); b.resize(1 << 20); keep.push(b) }`, Ends: []string{"exception", "memory"}},
		{Name: "keeps", Body: `(globalThis.keep ??= []).push(new Array(20000).fill(1.5)); return "kept"`, Said: "kept", Ends: []string{"ok", "memory"}},
		{Name: "poison", Ends: []string{"ok", "exception", "timeout", "cpu"}, Said: "poison",
			Body: `Promise.prototype.then = function () { return this }; Object.defineProperty(Object.prototype, "status", { get: () => 204 });
			Array.prototype[Symbol.iterator] = null; globalThis.Response = function () {}; return "poison"`},
		{Name: "exits", Ends: []string{"exception"}, Body: `throw { get stack() { for (;;); }, toString() { for (;;); }, get message() { return token } }`},
	}
}

// Code is the module of the script. base is the address of the server that it asks.
func (s *Script) Code(base string) string {
	if s.Module != "" {
		return s.Module
	}
	return fmt.Sprintf("const BASE = %q;", base) + strings.Replace(prelude, "BODY", s.Body, 1)
}

// Limits are those that the script reaches, or none does.
func (s *Script) Limits() workers.Limits {
	// A limit that no script should reach must not depend on how busy the machine is.
	l := workers.Limits{HeapMB: 24, CPU: workers.Millis(20 * time.Second), Wall: workers.Millis(time.Minute)}
	switch {
	case slices.Contains(s.Ends, "cpu") && slices.Contains(s.Ends, "memory"):
		l.CPU = workers.Millis(200 * time.Millisecond)
	case slices.Contains(s.Ends, "cpu") || s.Name == "loop-after":
		l.CPU = workers.DefaultLimits.CPU
	}
	if slices.Contains(s.Ends, "timeout") || s.Name == "wait-until-endless" {
		l.Wall = workers.Millis(150 * time.Millisecond)
	}
	return l
}

// Server is what the scripts ask, by its address. The caller closes it.
func Server() *httptest.Server {
	mux := http.NewServeMux()
	mux.HandleFunc("/echo", func(w http.ResponseWriter, r *http.Request) {
		text, _ := url.QueryUnescape(r.URL.RawQuery)
		_, _ = w.Write([]byte(text))
	})
	mux.HandleFunc("/slow", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	mux.HandleFunc("/big", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 256<<10)) })
	return httptest.NewUnstartedServer(mux)
}

// Answer is what the handler of a script returns.
type Answer struct{ Who, Token, Foreign, Said string }

// ReadAnswer reads the body of a reply to a request, or to a task.
func ReadAnswer(body []byte) (Answer, error) {
	var doc struct {
		Answer
		Data *Answer
	}
	err := json.Unmarshal(body, &doc)
	if doc.Data != nil {
		doc.Answer = *doc.Data
	}
	return doc.Answer, err
}

// Allows reports whether an attempt may end so: "ok", or a reason.
func (s *Script) Allows(outcome string) bool {
	if len(s.Ends) == 0 {
		return outcome == "ok"
	}
	return slices.Contains(s.Ends, outcome)
}
