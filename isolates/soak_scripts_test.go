package isolates

import "slices"

// soakScript is the code of a worker of the soak, as the body of an async function of token, env, ctx and attempt.
type soakScript struct {
	name   string
	body   string
	module string   // instead of body: the whole module
	said   string   // what body returns
	ends   []string // how an attempt may end: ok or a reason; ok alone when empty
	lines  int      // of output, when it ends ok
	size   int      // of the reply, of which only the length is checked
	fails  int      // attempts that fail before one ends ok; it is a task
}

// soakPrelude makes a module of a script. mine says which event of another worker this context has seen, if any.
const soakPrelude = `
const sleep = (ms) => new Promise((done) => setTimeout(done, ms)), ask = (path, token) => fetch(BASE + path + "?" + encodeURIComponent(token)).then((r) => r.text());
const seen = [];
const mine = (env, token) => { if (seen.length < 50) seen.push(token); return seen.find((t) => !t.startsWith(env.WHO + "#")) ?? "" };
const script = async (token, env, ctx, attempt) => { BODY };
const handle = async (token, env, ctx, attempt) => ({ who: env.WHO, token, foreign: mine(env, token), said: await script(token, env, ctx, attempt) });
export default {
	async fetch(request, env, ctx) { const x = await handle(await request.text(), env, ctx, 1); return x.said instanceof Response ? x.said : Response.json(x) },
	async task(event, env, ctx) { return handle(await event.text(), env, ctx, event.attempt) },
};`

// goodScripts always end ok.
func goodScripts() []soakScript {
	return []soakScript{
		{name: "echo", body: `return "echo"`, said: "echo"},
		{name: "timers", said: "timers", body: `let n = 0; await Promise.all([1, 2, 3].map((i) => sleep(i).then(() => n++)));
			const i = setInterval(() => n++, 1); await sleep(4); clearInterval(i); return n >= 4 ? "timers" : "only " + n`},
		{name: "wait-until", said: "early", lines: 2, body: `ctx.waitUntil(sleep(2).then(() => { console.log("TOKEN " + token); ctx.waitUntil(sleep(1).then(() => console.log("TOKEN " + token))) })); return "early"`},
		{name: "fetch", said: "fetched", body: `const r = await Promise.all([1, 2, 3].map((i) => ask("/echo", i + token))); return r.every((x, i) => x === i + 1 + token) ? "fetched" : r.join()`},
		{name: "body", said: "262144", body: `return String((await (await fetch(BASE + "/big")).arrayBuffer()).byteLength)`},
		{name: "abort", said: "TimeoutError", body: `try { await fetch(BASE + "/slow", { signal: AbortSignal.timeout(3) }); return "not aborted" } catch (e) { return e.name }`},
		{name: "abandon", said: "gone", body: `fetch(BASE + "/slow"); ask("/echo", token); setTimeout(() => console.log("TOKEN of the past"), 1); return "gone"`},
		{name: "stream", said: "streamed",
			body: `const s = new ReadableStream({ async pull(c) { await sleep(1); c.enqueue(token); c.close() } });
			const text = await new Response(s.pipeThrough(new TransformStream({ transform(x, c) { c.enqueue(new TextEncoder().encode(x + "!")) } }))).text(); return text === token + "!" ? "streamed" : text`},
		{name: "send", said: "sent", body: `await Promise.all([env.JOBS.send(token), env.JOBS.send(token)]); return "sent"`},
		{name: "hash", said: "32", body: `const d = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(token)); return String(structuredClone({ n: d.byteLength }).n)`},
		{name: "log", said: "logged", lines: 5, body: `for (let i = 0; i < 5; i++) console.log("TOKEN " + token); console.group("g"); return "logged"`},
		{name: "buffers", said: "true", body: `const b = new Uint8Array(1 << 20).fill(token.length); return String(b[1 << 19] === token.length)`},
		{name: "retry", said: "third", fails: 2, body: `if (attempt < 3) { await sleep(1); throw new Error("attempt " + attempt) } return "third"`},
	}
}

// badScripts are common mistakes.
func badScripts() []soakScript {
	return []soakScript{
		{name: "throws", body: `throw new TypeError(token)`, ends: []string{"exception"}},
		{name: "rejects", body: `await sleep(2); await Promise.reject(token)`, ends: []string{"exception"}},
		{name: "hangs", body: `await new Promise(() => {})`, ends: []string{"timeout"}},
		{name: "waits", body: `await new Promise(() => setInterval(() => {}, 10))`, ends: []string{"timeout"}},
		{name: "wait-until-endless", body: `ctx.waitUntil(new Promise(() => setInterval(() => {}, 20))); return "cut"`, said: "cut"},
		{name: "huge-reply", body: `return new Response("x".repeat(4 << 20))`, size: 4 << 20},
		{name: "huge-buffer", body: `return new Response(new Uint8Array(70 << 20))`, ends: []string{"exception"}},
		{name: "storm", body: `for (let i = 0; i < 1500; i++) Promise.reject(new Error("TOKEN " + token)); return "storm"`, said: "storm"},
		{name: "many-timers", body: `for (;;) setTimeout(() => {}, 1e6)`, ends: []string{"cpu", "memory", "exception"}},
		{name: "uncaught", body: `setTimeout(() => { throw new Error("TOKEN " + token) }, 1); await sleep(3); return "on"`, said: "on", lines: 1},
		{name: "load-throws", module: `throw new Error("at load")`, ends: []string{"exception"}},
		{name: "load-hangs", module: `await new Promise(() => {})`, ends: []string{"timeout"}},
		{name: "syntax", module: `export default {`, ends: []string{"exception"}},
		{name: "not-a-response", module: `export default { fetch: () => 5, task: () => 5n }`, ends: []string{"exception"}},
		{name: "no-handler", module: `export default {}`, ends: []string{"no-handler"}},
	}
}

// hostileScripts try to take more than allowed. None of them can make V8 give up a thread.
func hostileScripts() []soakScript {
	cpu, memory := []string{"cpu"}, []string{"memory"}
	return []soakScript{
		{name: "loop", body: `for (;;);`, ends: cpu},
		{name: "loop-later", body: `await sleep(1); for (;;);`, ends: cpu},
		{name: "loop-after", body: `ctx.waitUntil(sleep(1).then(() => { for (;;); })); return "replied"`, said: "replied"},
		// each promise waits for the next,
		{name: "microtasks", body: `const f = () => Promise.resolve().then(f); await f()`, ends: []string{"cpu", "memory"}},
		{name: "regexp", body: `/(a+)+$/.test("a".repeat(40) + "b")`, ends: cpu},
		{name: "arrays", body: `const keep = []; for (;;) keep.push(new Array(1000).fill(1.5))`, ends: memory},
		{name: "strings", body: `const keep = []; for (let i = 0; ; i++) keep.push("x".repeat(1000) + i)`, ends: []string{"memory", "cpu"}},
		{name: "closures", body: `const keep = []; for (let i = 0; ; i++) keep.push(() => i)`, ends: []string{"memory", "cpu"}},
		{name: "promises", body: `const keep = []; for (;;) { keep.push(new Promise(() => {})); if (keep.length % 1000 === 0) await 1 }`, ends: []string{"memory", "cpu"}},
		{name: "buffers-endless", body: `const keep = []; for (;;) keep.push(new Uint8Array(1 << 20))`, ends: []string{"exception", "memory"}},
		{name: "resizable", body: `const keep = []; for (;;) { const b = new ArrayBuffer(1, { maxByteLength: 1 << 20 }); b.resize(1 << 20); keep.push(b) }`, ends: []string{"exception", "memory"}},
		{name: "keeps", body: `(globalThis.keep ??= []).push(new Array(20000).fill(1.5)); return "kept"`, said: "kept", ends: []string{"ok", "memory"}},
		{name: "poison", ends: []string{"ok", "exception", "timeout", "cpu"}, said: "poison",
			body: `Promise.prototype.then = function () { return this }; Object.defineProperty(Object.prototype, "status", { get: () => 204 });
			Array.prototype[Symbol.iterator] = null; globalThis.Response = function () {}; return "poison"`},
		{name: "exits", ends: []string{"exception"}, body: `throw { get stack() { for (;;); }, toString() { for (;;); }, get message() { return token } }`},
	}
}

func (s *soakScript) allows(outcome string) bool {
	if len(s.ends) == 0 {
		return outcome == "ok"
	}
	return slices.Contains(s.ends, outcome)
}
