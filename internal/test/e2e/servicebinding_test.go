package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/process/config"
)

// auth answers requests and calls.
const auth = `import { WorkerEntrypoint } from "cloudflare:workers";
export default class extends WorkerEntrypoint {
	async fetch(request) {
		const url = new URL(request.url);
		if (url.pathname === "/throw") throw new RangeError("too far");
		if (url.pathname === "/moved") return Response.redirect("http://x/target", 302);
		if (url.pathname === "/echo") return new Response(request.body);
		if (url.pathname === "/stream") {
			let n = 0;
			return new Response(new ReadableStream({ pull(c) { n++ === 20 ? c.close() : c.enqueue(new Uint8Array(100000)) } }));
		}
		return new Response([request.method, request.url, await request.text(), request.headers.get("x-name")].join("|"), { status: 201, headers: { "x-from": "auth é" } });
	}
	add(a, b) { return a + b }
	echo(...args) { return args }
	fail() { const e = new TypeError("no", { cause: { why: 7 } }); e.code = "E7"; throw e }
	own() { return "prototype" }
	constructor(ctx, env) { super(ctx, env); this.own = () => "own" }
	aborts() { throw new DOMException("gone", "AbortError") }
	uncloned() { return () => 1 }
	bad() { return { get a() { throw new RangeError("read") } } }
	late() { this.ctx.waitUntil(new Promise((done) => setTimeout(done, 50))); return this.env.NAME }
}
export class Admin extends WorkerEntrypoint {
	fetch(request) { return new Response("admin of " + new URL(request.url).host) }
	who() { return "admin" }
}
export const plain = { fetch(request, env, ctx) { return new Response("plain " + env.NAME + typeof ctx.waitUntil + (this === plain)) } };
`

func deployAuth(h *testFleet) {
	h.deploy("acme", "auth", auth, `{"vars": {"NAME": "n"}}`)
}

// A worker calls another one of its owner: requests with streams both ways, and methods with arguments that are cloned.
func TestServiceBinding(t *testing.T) {
	t.Parallel()
	h := openFleet(t)
	deployAuth(h)
	h.deploy("acme", "caller", `export default { async fetch(r, env) {
		const out = [], see = async (f) => { try { out.push(await f()) } catch (e) { out.push([e.name, e.message, e.code, e.cause, e.remote]) } };
		await see(async () => { const a = await env.AUTH.fetch("http://x/a?b#c", { method: "POST", body: "text", headers: { "x-name": "é" } }); return [a.status, await a.text(), a.headers.get("x-from")] });
		await see(async () => (await env.AUTH.fetch(new Request("http://x/", { method: "PUT", body: new ReadableStream({ start(c) { c.enqueue(new TextEncoder().encode("streamed")); c.close() } }), duplex: "half" }))).text());
		await see(async () => (await (await env.AUTH.fetch("http://x/stream")).arrayBuffer()).byteLength);
		await see(async () => { // the response begins before the request has ended
			const { readable, writable } = new TransformStream();
			const begun = env.AUTH.fetch("http://x/echo", { method: "POST", body: readable, duplex: "half" });
			const writer = writable.getWriter();
			writer.write(new TextEncoder().encode("la"));
			const echo = await begun;
			writer.write(new TextEncoder().encode("ter"));
			writer.close();
			return echo.text();
		});
		await see(async () => { const r = await env.AUTH.fetch("http://x/", { method: "HEAD" }); return [r.status, r.body, await r.text()] });
		await see(async () => (await env.AUTH.fetch("http://x/moved")).text());
		await see(async () => (await env.AUTH.fetch("http://x/moved", { redirect: "manual" })).status);
		await see(() => env.AUTH.fetch("http://x/throw"));
		await see(() => env.AUTH.fetch("/relative"));
		await see(() => env.AUTH.add(2, 3));
		await see(async () => { const [m, d, b, n] = await env.AUTH.echo(new Map([[1, { a: [1] }]]), new Date(0), new Uint8Array([1, 2]), null); return [m.get(1).a[0], d.toISOString(), b instanceof Uint8Array && b.length, n] });
		await see(() => env.AUTH.fail());
		await see(() => env.AUTH.nothing());
		await see(() => env.AUTH.constructor === env.ADMIN.constructor);
		await see(() => env.AUTH.echo(() => 1));
		await see(() => env.AUTH.echo(new Headers()));
		await see(() => env.AUTH.late());
		await see(() => env.AUTH.own());
		await see(() => env.AUTH[""]());
		await see(() => env.AUTH.aborts());
		await see(() => env.AUTH.uncloned());
		await see(() => env.AUTH.bad());
		await see(async () => [await env.ADMIN.who(), await (await env.ADMIN.fetch("http://h/")).text()]);
		await see(async () => (await env.PLAIN.fetch("http://h/")).text());
		await see(() => env.PLAIN.who());
		await see(() => env.NONE.who());
		await see(() => env.ABSENT.fetch("http://h/"));
		await see(() => [typeof env.AUTH.then, typeof env.AUTH.x, String(env.AUTH), "x" in env.AUTH, Object.keys(env.AUTH).length]);
		return Response.json(out);
	} }`, `{"services": {"AUTH": "auth", "ADMIN": "auth#Admin", "PLAIN": "auth#plain", "NONE": "auth#None", "ABSENT": "absent"}, "limits": {"cpuMs": 60000}}`)
	require.JSONEq(t, `[
		[201, "POST|http://x/a?b|text|é", "auth é"],
		"PUT|http://x/|streamed|",
		2000000,
		"later",
		[201, null, ""],
		"GET|http://x/target||",
		302,
		["RangeError", "too far", null, null, true],
		["TypeError", "new Request: '/relative' is not an absolute URL", null, null, null],
		5,
		[1, "1970-01-01T00:00:00.000Z", 2, null],
		["TypeError", "no", "E7", {"why": 7}, true],
		["TypeError", "The RPC receiver does not implement the method \"nothing\".", null, null, true],
		true,
		["DataCloneError", "a function could not be cloned.", 25, null, null],
		["DataCloneError", "Could not serialize object of type \"Headers\". This type does not support serialization.", 25, null, null],
		"n",
		["TypeError", "The RPC receiver does not implement the method \"own\".", null, null, true],
		["TypeError", "the name of a method is empty", null, null, null],
		["AbortError", "gone", 20, null, true],
		["DataCloneError", "a function could not be cloned.", 25, null, true],
		["RangeError", "read", null, null, true],
		["admin", "admin of h"],
		"plain nfunctiontrue",
		["TypeError", "The RPC receiver does not implement the method \"who\".", null, null, true],
		["TypeError", "the worker has no entrypoint None: export a class that extends WorkerEntrypoint", null, null, true],
		["TypeError", "fetch failed: no-worker: there is no worker acme/absent", null, null, null],
		["undefined", "function", "[object Fetcher]", true, 0]
	]`, string(h.call("acme/caller").Body))
}

// All places of the owner and all slots may be taken by runs that wait for a call.
func TestServiceCallsOfAFullOwner(t *testing.T) {
	t.Parallel()
	h := openFleet(t, func(c *config.Config) { c.OwnerMaxRunning, c.Slots = 2, 2 })
	h.deploy("acme", "w", `export default { async fetch(r, env) {
		const n = Number(new URL(r.url).searchParams.get("n") ?? 0);
		if (n === 8) return new Response("deep");
		return env.SELF.fetch("http://x/?n=" + (n + 1));
	} }`, `{"services": {"SELF": "w"}, "limits": {"cpuMs": 60000}}`)
	var replies []func() *events.Reply
	for range 8 {
		c := h.send(events.Fetch, "acme/w", "")
		replies = append(replies, func() *events.Reply { return h.reply(c) })
	}
	for _, r := range replies {
		require.Equal(t, "deep", string(r().Body))
	}
}

// A worker may have methods only: other workers call them, and events find no handler.
func TestWorkerThatIsAServiceOnly(t *testing.T) {
	t.Parallel()
	h := openFleet(t)
	h.deploy("acme", "sums", `import { WorkerEntrypoint } from "cloudflare:workers";
		export default class extends WorkerEntrypoint { add(a, b) { return a + b } }
		export const odd = new Proxy({}, { get() { throw new Error("no") } });`)
	h.deploy("acme", "w", `export default { async fetch(r, env) { return new Response(await env.SUMS.add(2, 3)) } }`, `{"services": {"SUMS": "sums"}}`)
	require.Equal(t, "5", string(h.call("acme/w").Body))
	require.Contains(t, string(h.call("acme/sums").Body), "no-handler")
}

// When a caller ends without waiting, the signal of what it called fires, and the called worker goes on.
func TestCallerThatDoesNotWait(t *testing.T) {
	t.Parallel()
	h := openFleet(t, inProcess) // from a cell, a call may come after the end of its run, and does not begin
	const kv = `{"kv": {"KV": "space"}, "limits": {"cpuMs": 60000, "wallMs": 600000}}`
	h.deploy("acme", "called", `export default { fetch(request, env, ctx) {
		setTimeout(() => {}, 60000); // a run that waits for nothing of its own ends
		return new Promise((done) => request.signal.addEventListener("abort", () => done(env.KV.put("why", request.signal.reason.name).then(() => new Response("late")))));
	} }`, kv)
	h.deploy("acme", "caller", `export default { fetch(request, env) { env.CALLED.fetch("http://x/").catch(() => {}); return new Response("at once") } }`,
		`{"services": {"CALLED": "called"}}`)
	h.deploy("acme", "reader", `export default { async fetch(r, env) { return new Response(await env.KV.get("why")) } }`, kv)
	require.Equal(t, "at once", string(h.call("acme/caller").Body))
	require.Eventually(t, func() bool { return string(h.call("acme/reader").Body) == "AbortError" }, patience,
		10*time.Millisecond)
}

// A called worker that passes a limit is the caller's error, and its isolate's end is not that of others: the caller
// runs in another isolate if their limits differ.
func TestCalledWorkerThatPassesALimit(t *testing.T) {
	t.Parallel()
	h := openFleet(t)
	h.deploy("acme", "called", `import { WorkerEntrypoint } from "cloudflare:workers";
		export default class extends WorkerEntrypoint {
			fetch() { for (;;); }
			fill() { const all = []; for (;;) all.push(new Array(1e5).fill(all.length)); }
			spin() { for (;;); }
		}`, `{"limits": {"cpuMs": 300, "heapMB": 16}}`)
	h.deploy("acme", "caller", `export default { async fetch(r, env) {
		const out = [];
		for (const f of [() => env.CALLED.spin(), () => env.CALLED.fill(), () => env.CALLED.fetch("http://x/")]) {
			try { await f(); out.push("none") } catch (e) { out.push(e.message.split(":").slice(0, e.message.startsWith("fetch") ? 2 : 1).join(":")) }
		}
		return Response.json(out);
	} }`, `{"services": {"CALLED": "called"}, "limits": {"cpuMs": 60000, "heapMB": 64}}`)
	require.JSONEq(t, `["cpu", "memory", "fetch failed: cpu"]`, string(h.call("acme/caller").Body))
}
