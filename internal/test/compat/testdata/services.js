// Calls of service bindings, for Cloudflare's workerd in miniflare and for Pinwheel. The worker calls itself: SELF is its
// default export, the others are exports. Each case returns what can be shown as JSON.
import { WorkerEntrypoint, RpcTarget, env as imported, exports as own, waitUntil } from "cloudflare:workers";


class Parent extends WorkerEntrypoint {
  inherited() { return "inherited"; }
  overridden() { return "parent"; }
}

class Other {}

class Custom extends Error {
  constructor(message) { super(message); this.name = "Custom"; this.extra = { a: 1 }; }
}

const cyclic = () => { const a = { name: "a" }; a.self = a; return a; };
const stream = (...parts) => new ReadableStream({ start(c) { for (const p of parts) c.enqueue(new TextEncoder().encode(p)); c.close(); } });
const failing = () => new ReadableStream({ start(c) { c.enqueue(new TextEncoder().encode("a")); }, pull(c) { c.error(new RangeError("broken")); } });

// throwing are what fetch handlers and methods throw.
const throwing = {
  error: () => { throw new Error("plain"); },
  "error without a message": () => { throw new Error(); },
  "error with a colon": () => { throw new Error("a: b: c"); },
  "error with lines": () => { throw new Error("one\ntwo"); },
  TypeError: () => { throw new TypeError("typed"); },
  RangeError: () => { throw new RangeError("ranged"); },
  SyntaxError: () => { throw new SyntaxError("syntax"); },
  EvalError: () => { throw new EvalError("eval"); },
  ReferenceError: () => { throw new ReferenceError("reference"); },
  URIError: () => { throw new URIError("uri"); },
  AggregateError: () => { throw new AggregateError([new Error("one")], "many"); },
  custom: () => { throw new Custom("mine"); },
  "error with a name": () => { const e = new Error("named"); e.name = "Named"; throw e; },
  "error with a cause": () => { throw new Error("outer", { cause: new TypeError("inner") }); },
  "error with properties": () => { const e = new Error("props"); e.code = 7; e.list = [1]; throw e; },
  "error with a function": () => { const e = new Error("fn"); e.f = () => 1; e.code = 7; throw e; },
  "error with remote": () => { const e = new Error("r"); e.remote = "mine"; throw e; },
  DOMException: () => { throw new DOMException("dom", "AbortError"); },
  string: () => { throw "text"; },
  number: () => { throw 7; },
  null: () => { throw null; },
  undefined: () => { throw undefined; },
  object: () => { throw { a: 1, message: "not an error" }; },
  function: () => { throw () => 1; },
  Response: () => { throw new Response("thrown"); },
};

// results are what methods return.
const results = {
  undefined: () => undefined, null: () => null, true: () => true, number: () => -0, NaN: () => NaN, bigint: () => 2n ** 70n, string: () => "é\0\ud800",
  date: () => new Date(7), "invalid date": () => new Date(NaN), regexp: () => { const r = /a(b)/giu; r.lastIndex = 2; return r; },
  map: () => new Map([[1, new Map([["a", new Set([1])]])]]), set: () => new Set([1, "a", null]),
  array: () => [1, [2]], "sparse array": () => { const a = [1]; a[3] = 4; return a; }, "array with a property": () => { const a = [1]; a.x = 2; return a; },
  bytes: () => new Uint8Array([1, 2]), floats: () => new Float64Array([1.5]), bigints: () => new BigInt64Array([5n]), clamped: () => new Uint8ClampedArray([300]), view: () => new DataView(new Uint8Array([1, 2, 3]).buffer, 1),
  "view of a part": () => new Uint8Array([1, 2, 3, 4]).subarray(1, 3), buffer: () => new Uint8Array([9]).buffer, "same buffer twice": () => { const b = new Uint8Array([9]).buffer; return [b, b]; },
  cyclic, "same object twice": () => { const o = {}; return [o, o]; },
  "boxed primitives": () => [Object(1), Object("a"), Object(true), Object(1n)],
  "null prototype": () => ({ __proto__: null, a: 1 }),
  "object with a getter": () => ({ get a() { return 1; } }), "object with a symbol": () => ({ [Symbol("a")]: 1, b: 2 }), "object with __proto__": () => JSON.parse('{"__proto__": {"x": 1}, "y": 2}'),
  "non-enumerable": () => Object.defineProperty({ a: 1 }, "b", { value: 2 }),
  error: () => new RangeError("a value"), "nested errors": () => [new Error("a", { cause: new TypeError("b") })], "error with properties": () => Object.assign(new Error("p"), { code: 7 }), "AggregateError": () => new AggregateError([new Error("one")], "many"), "Custom": () => new Custom("mine"),
  "instance of a class": () => new Other(), "in a promise": () => Promise.resolve(5), "thenable": () => ({ then(resolve) { resolve("thened"); } }),
  symbol: () => Symbol("s"), promise: () => [Promise.resolve(1)], weakmap: () => new WeakMap(), "proxy": () => new Proxy({ a: 1 }, {}), generator: () => (function* () { yield 1; })(),
  DOMException: () => new DOMException("d", "AbortError"), blob: () => new Blob(["a"]), URL: () => new URL("http://x/"), FormData: () => new FormData(), AbortSignal: () => AbortSignal.abort(), "arguments": () => (function () { return arguments; })(1, 2),
  function: () => () => 1, "function inside": () => ({ f() { return 1; } }), class: () => Other, Response: () => new Response("r"), Request: () => new Request("http://x/"), Headers: () => new Headers({ a: "b" }), ReadableStream: () => stream("s"), WritableStream: () => new WritableStream(), RpcTarget: () => new (class extends RpcTarget { x() { return 1; } })(), "RpcTarget inside": () => [new RpcTarget()], binding: (self) => self.env.SELF, env: (self) => self.env, ctx: (self) => self.ctx, "CryptoKey": () => crypto.subtle.generateKey({ name: "HMAC", hash: "SHA-256" }, true, ["sign"]), "throwing getter": () => ({ get a() { throw new RangeError("got"); } }),
};

async function answer(request, env, ctx) {
  const url = new URL(request.url);
  const [, what, name] = url.pathname.split("/").map(decodeURIComponent);
  switch (what) {
    case "echo": return Response.json([request.method, request.url, [...request.headers].filter(([k]) => k.startsWith("x-") || k === "content-type" || k === "cookie"), request.body === null, await request.text(), request.redirect]);
    case "bytes": return new Response(new Uint8Array(await request.arrayBuffer()));
    case "status": return new Response(null, { status: Number(name), headers: { "X-A": "b" } });
    case "text": return new Response("text", { statusText: "Fine", headers: [["Set-Cookie", "a=1"], ["Set-Cookie", "b=2"], ["X-Twice", "1"], ["X-Twice", "2"], ["X-Latin", "\xe9"]] });
    case "to": return new Response(null, { status: Number(name ?? 302), headers: { Location: url.searchParams.get("u") ?? "/echo/moved" } });
    case "loop": return Response.redirect(request.url, 302);
    case "coded": {
      const text = new Blob(["coded text"]), sent = url.searchParams.get("encode");
      return new Response(sent ? text.stream().pipeThrough(new CompressionStream("gzip")) : text, { encodeBody: sent ?? "automatic", headers: { "Content-Encoding": "gzip" } });
    }
    case "lie": return new Response("no gzip", { encodeBody: "manual", headers: { "Content-Encoding": "gzip" } });
    case "stream": return new Response(stream("a", "b", "c"));
    case "failing": return new Response(failing());
    case "throw": return throwing[name]();
    case "return": return results[name]();
    case "nothing": return undefined;
    case "json": return Response.json({ a: 1 });
    case "used": { const r = new Response("used"); await r.text(); return r; }
    case "never": await new Promise((done) => setTimeout(done, 10_000)); return new Response("late");
    case "slow": await new Promise((done) => setTimeout(done, 200)); return new Response("slow");
    case "depth": { const n = Number(name); return n === 0 ? new Response("bottom") : env.SELF.fetch(`http://x/depth/${n - 1}`); }
    case "late": ctx.waitUntil(new Promise((done) => setTimeout(done, 20))); return new Response("now");
    case "ignore": return new Response("ignored the body");
    case "clone": { const c = request.clone(); return new Response(await request.text() + await c.text()); }
    case "signal": return Response.json([request.signal instanceof AbortSignal, request.signal.aborted]);
    case "cf": return Response.json([typeof request.cf, request.cf?.a ?? null]);
    case "arrived": return Response.json([[...request.headers], request.cf ?? "none"]);
    case "odd": return new Response("odd", { status: 299, statusText: "Quite Fine", headers: { "Content-Length": "3" } });
    case "moved": return new Response(null, { status: 302, statusText: "Over There", headers: { Location: "/text" } });
  }
  return new Response("no such path", { status: 404 });
}

// shown makes JSON of a value that keeps what JSON loses.
function shown(v, depth = 0) {
  if (depth > 6) return "...";
  switch (typeof v) {
    case "undefined": return "undefined";
    case "number": return Object.is(v, -0) ? "-0" : Number.isFinite(v) ? v : String(v);
    case "bigint": return `${v}n`;
    case "function": return "a function";
    case "symbol": return "a symbol";
    case "string": return v.replace(/[\ud800-\udfff]/g, (c) => "\\u" + c.charCodeAt(0).toString(16));
  }
  if (v === null || typeof v !== "object") return v;
  const tag = Object.prototype.toString.call(v).slice(8, -1);
  if (v instanceof Error) return [v.constructor.name, v.name, v.name === "DataCloneError" ? "" : v.message, Object.entries(v).filter(([k]) => k !== "stack" && !(v instanceof DOMException && (k === "code" || k === "name" || k === "message"))).map(([k, p]) => [k, shown(p, depth + 1)]), v.cause === undefined ? null : shown(v.cause, depth + 1), v.errors === undefined ? null : shown(v.errors, depth + 1)];
  if (v instanceof Map) return [tag, [...v].map((e) => shown(e, depth + 1))];
  if (v instanceof Set) return [tag, [...v].map((e) => shown(e, depth + 1))];
  if (v instanceof Date) return [tag, String(v.getTime())];
  if (v instanceof RegExp) return [tag, String(v), v.lastIndex];
  if (v instanceof ArrayBuffer) return [tag, [...new Uint8Array(v)]];
  if (ArrayBuffer.isView(v)) return [tag, v.byteOffset, v.buffer.byteLength, v instanceof DataView ? v.byteLength : [...v].map(String)];
  if (v instanceof Number || v instanceof String || v instanceof Boolean || v instanceof BigInt) return [tag, String(v)];
  if (Array.isArray(v)) return [v.length, ...Object.entries(v).map(([k, e]) => k === String(Number(k)) ? shown(e, depth + 1) : [k, shown(e, depth + 1)])];
  return { [tag === "Object" ? "" : tag]: Object.getPrototypeOf(v) === Object.prototype, ...Object.fromEntries(Object.entries(v).map(([k, e]) => ["." + k, e === v ? "itself" : shown(e, depth + 1)])) };
}

const read = async (r) => [r.status, await r.text()];
const json = async (r) => (await r).json();
const message = async (promise) => { try { await promise; return "nothing"; } catch (e) { return [e?.constructor?.name, e?.name, e instanceof DOMException ? "" : e?.message, e?.remote]; } };
const fails = async (promise) => { try { return ["returns", await promise]; } catch (e) { return ["fails", e?.constructor?.name]; } };

const coded = async (response) => { try { const r = await response; return [r.headers.get("content-encoding"), (await r.text()).replace(/[^ -~].*/s, "…")]; } catch (e) { return e.name; } };

const cases = {
  // ---- requests ----
  "string": ({ SELF }) => json(SELF.fetch("http://x/echo")),
  "URL": ({ SELF }) => json(SELF.fetch(new URL("http://x/echo?a=b&c=%20#hash"))),
  "Request": ({ SELF }) => json(SELF.fetch(new Request("http://x/echo", { method: "POST", body: "b", headers: { "X-A": "1" } }))),
  "Request and init": ({ SELF }) => json(SELF.fetch(new Request("http://x/echo", { method: "POST", body: "b", headers: { "X-A": "1" } }), { method: "PUT", headers: { "X-B": "2" } })),
  "used Request": async ({ SELF }) => { const r = new Request("http://x/echo", { method: "POST", body: "b" }); await r.text(); return fails(SELF.fetch(r)); },
  "request is used": async ({ SELF }) => { const r = new Request("http://x/echo", { method: "POST", body: "b" }); await SELF.fetch(r); return r.bodyUsed; },
  "incoming request": async ({ SELF }, ctx, request) => json(SELF.fetch(new Request("http://x/echo", request))),
  "init": ({ SELF }) => json(SELF.fetch("http://x/echo", { method: "PATCH", body: "é", headers: [["X-A", "1"], ["x-a", "2"]] })),
  "lower method": ({ SELF }) => json(SELF.fetch("http://x/echo", { method: "post" })),
  "odd method": ({ SELF }) => json(SELF.fetch("http://x/echo", { method: "PROPFIND" })),
  "own method": ({ SELF }) => fails(SELF.fetch("http://x/echo", { method: "MINE" })),
  "DELETE with a body": ({ SELF }) => json(SELF.fetch("http://x/echo", { method: "DELETE", body: "b" })),
  "GET with a body": ({ SELF }) => fails(SELF.fetch("http://x/echo", { body: "b" })),
  "OPTIONS": ({ SELF }) => json(SELF.fetch("http://x/echo", { method: "OPTIONS" })),
  "TRACE": ({ SELF }) => fails(SELF.fetch("http://x/echo", { method: "TRACE" })),
  "no arguments": ({ SELF }) => fails(SELF.fetch()),
  "relative URL": ({ SELF }) => fails(SELF.fetch("/echo")),
  "empty URL": ({ SELF }) => fails(SELF.fetch("")),
  "URL without a scheme": ({ SELF }) => fails(SELF.fetch("x/echo")),
  "ftp URL": ({ SELF }) => fails(SELF.fetch("ftp://x/echo")),
  "data URL": ({ SELF }) => fails(SELF.fetch("data:,echo")),
  "https URL": ({ SELF }) => json(SELF.fetch("https://x/echo")),
  "URL with a port": ({ SELF }) => json(SELF.fetch("http://x:1/echo")),
  "URL with a password": ({ SELF }) => fails(SELF.fetch("http://u:p@x/echo").then(json)),
  "IPv6 URL": ({ SELF }) => json(SELF.fetch("http://[::1]:8080/echo")),
  "private URL": ({ SELF }) => json(SELF.fetch("http://127.0.0.1/echo")),
  "IDN URL": ({ SELF }) => json(SELF.fetch("http://bücher.example/echo/ü?ü")),
  "URL with dots": ({ SELF }) => json(SELF.fetch("http://x/a/../echo/./b//c")),
  "encoded URL": ({ SELF }) => json(SELF.fetch("http://x/echo/%2e%2e%2fa%00?%zz")),
  "long URL": async ({ SELF }) => (await json(SELF.fetch("http://x/echo?" + "a".repeat(10_000))))[1].length,
  "empty body": ({ SELF }) => json(SELF.fetch("http://x/echo", { method: "POST", body: "" })),
  "no body": ({ SELF }) => json(SELF.fetch("http://x/echo", { method: "POST" })),
  "null body": ({ SELF }) => json(SELF.fetch("http://x/echo", { method: "POST", body: null })),
  "bytes body": async ({ SELF }) => [...new Uint8Array(await (await SELF.fetch("http://x/bytes", { method: "POST", body: new Uint8Array([0, 255, 10, 13]) })).arrayBuffer())],
  "buffer body": async ({ SELF }) => [...new Uint8Array(await (await SELF.fetch("http://x/bytes", { method: "POST", body: new Uint8Array([1, 2]).buffer })).arrayBuffer())],
  "blob body": ({ SELF }) => json(SELF.fetch("http://x/echo", { method: "POST", body: new Blob(["b"], { type: "text/x" }) })),
  "form body": ({ SELF }) => json(SELF.fetch("http://x/echo", { method: "POST", body: new URLSearchParams({ a: "1" }) })),
  "stream body": ({ SELF }) => json(SELF.fetch("http://x/echo", { method: "POST", body: stream("a", "b"), duplex: "half" })),
  "empty stream body": ({ SELF }) => json(SELF.fetch("http://x/echo", { method: "POST", body: stream(), duplex: "half" })),
  "failing body": ({ SELF }) => fails(SELF.fetch("http://x/echo", { method: "POST", body: failing(), duplex: "half" })),
  "ignored body": async ({ SELF }) => read(await SELF.fetch("http://x/ignore", { method: "POST", body: "x".repeat(1 << 20) })),
  "large body": async ({ SELF }) => (await (await SELF.fetch("http://x/bytes", { method: "POST", body: new Uint8Array(3 << 20) })).arrayBuffer()).byteLength,
  "cloned body": async ({ SELF }) => read(await SELF.fetch("http://x/clone", { method: "POST", body: "ab" })),
  "HEAD": async ({ SELF }) => { const r = await SELF.fetch("http://x/text", { method: "HEAD" }); return [r.status, r.body === null, await r.text()]; },
  "request headers": ({ SELF }) => json(SELF.fetch("http://x/echo", { headers: { "X-A": " a ", "X-B": "\xe9", "X-Empty": "", Cookie: "a=b" } })),
  "bad header": ({ SELF }) => fails(SELF.fetch("http://x/echo", { headers: { "X-A": "a\r\nX-B: c" } })),
  "forbidden headers": async ({ SELF }) => (await SELF.fetch("http://x/echo", { headers: { Host: "other", "Content-Length": "5", Connection: "close", "Transfer-Encoding": "chunked" } })).status,
  "CF headers": ({ SELF }) => json(SELF.fetch("http://x/echo", { headers: { "X-Forwarded-For": "1.2.3.4", "X-Real-IP": "5.6.7.8" } })),
  "cf": ({ SELF }) => json(SELF.fetch("http://x/cf", { cf: { a: 1 } })),
  "cf of a Request": ({ SELF }) => json(SELF.fetch(new Request("http://x/arrived", { cf: { a: { b: [1, null] } } }))),
  "cf that is cyclic": ({ SELF }) => fails((async () => SELF.fetch("http://x/arrived", { cf: cyclic() }))()),
  "no headers": ({ SELF }) => json(SELF.fetch("http://x/arrived")),
  "all headers": ({ SELF }) => json(SELF.fetch("http://x/arrived", { headers: { Host: "other.test", "User-Agent": "me", Accept: "a/b", "CF-Connecting-IP": "1.2.3.4", "X-Forwarded-For": "1.2.3.4", Origin: "http://o" } })),
  "length of a body": ({ SELF }) => json(SELF.fetch("http://x/arrived", { method: "POST", body: "hello" })),
  "length of a large body": ({ SELF }) => json(SELF.fetch("http://x/arrived", { method: "PUT", body: new Uint8Array(100_000) })),
  "called signal": ({ SELF }) => json(SELF.fetch("http://x/signal")),

  // ---- responses ----
  "text": async ({ SELF }) => { const r = await SELF.fetch("http://x/text"); return [r.status, r.statusText, r.ok, r.headers.get("content-type"), r.headers.getSetCookie(), r.headers.get("x-twice"), r.headers.get("x-latin"), await r.text()]; },
  "response as made": async ({ SELF }) => { const all = []; for (const path of ["odd", "json", "text", "status/404", "status/204", "stream", "clone"]) { const r = await SELF.fetch("http://x/" + path); all.push([r.status, r.statusText, r.type, [...r.headers]]); } return all; },
  "redirect as made": async ({ SELF }) => { const r = await SELF.fetch("http://x/moved", { redirect: "manual" }); return [r.status, r.statusText, r.type, [...r.headers]]; },
  "response of a response": async ({ SELF }) => { const r = await SELF.fetch("http://x/odd"); const c = new Response(r.body, r); return [c.status, c.statusText, [...c.headers], r.clone().statusText]; },
  "response members": async ({ SELF }) => { const r = await SELF.fetch("http://x/text"); return [r.url, r.redirected, r.type, r.bodyUsed, r instanceof Response, r.webSocket === null]; },
  "response headers are immutable": async ({ SELF }) => { const r = await SELF.fetch("http://x/text"); r.headers.set("a", "b"); },
  "204": async ({ SELF }) => { const r = await SELF.fetch("http://x/status/204"); return [r.status, r.body === null, r.headers.get("x-a"), await r.text()]; },
  "205": async ({ SELF }) => { const r = await SELF.fetch("http://x/status/205"); return [r.status, r.body === null, await r.text()]; },
  "304": async ({ SELF }) => { const r = await SELF.fetch("http://x/status/304"); return [r.status, r.body === null, r.headers.get("x-a"), await r.text()]; },
  "200 without a body": async ({ SELF }) => { const r = await SELF.fetch("http://x/status/200"); return [r.status, await r.text()]; },
  "404": async ({ SELF }) => read(await SELF.fetch("http://x/status/404")),
  "500": async ({ SELF }) => read(await SELF.fetch("http://x/status/500")),
  "599": async ({ SELF }) => read(await SELF.fetch("http://x/status/599")),
  "coded by the runtime": ({ SELF }) => coded(SELF.fetch("http://x/coded")),
  "coded by the worker": ({ SELF }) => coded(SELF.fetch("http://x/coded?encode=manual")),
  "coded, passed on": async ({ SELF }) => { const r = await SELF.fetch("http://x/coded?encode=manual"); return coded(new Response(r.body, r)); },
  "not what it says": ({ SELF }) => coded(SELF.fetch("http://x/lie")),
  "json": ({ SELF }) => json(SELF.fetch("http://x/json")),
  "stream": async ({ SELF }) => read(await SELF.fetch("http://x/stream")),
  "stream reader": async ({ SELF }) => { let s = ""; for await (const c of (await SELF.fetch("http://x/stream")).body) s += new TextDecoder().decode(c); return s; },
  "failing stream": async ({ SELF }) => { const r = await SELF.fetch("http://x/failing"); return [r.status, (await fails(r.text()))[0]]; },
  "cancelled stream": async ({ SELF }) => { const r = await SELF.fetch("http://x/stream"); await r.body.cancel(); return r.status; },
  "response passed on": async ({ SELF }) => { const r = new Response((await SELF.fetch("http://x/text")).body, { status: 201 }); return read(r); },
  "response clone": async ({ SELF }) => { const r = await SELF.fetch("http://x/text"); const c = r.clone(); return [await r.text(), await c.text()]; },
  "returns nothing": ({ SELF }) => fails(SELF.fetch("http://x/nothing")),
  "returns text": ({ SELF }) => fails(SELF.fetch("http://x/return/string")),
  "returns used": ({ SELF }) => fails(SELF.fetch("http://x/used")),
  "no such path": async ({ SELF }) => read(await SELF.fetch("http://x/")),

  // ---- redirects ----
  "redirect": async ({ SELF }) => { const r = await SELF.fetch("http://x/to/302"); return [r.status, r.url, r.redirected, await r.json()]; },
  "redirect 301 of POST": ({ SELF }) => json(SELF.fetch("http://x/to/301", { method: "POST", body: "b" })),
  "redirect 303 of POST": ({ SELF }) => json(SELF.fetch("http://x/to/303", { method: "POST", body: "b" })),
  "redirect 307 of POST": ({ SELF }) => json(SELF.fetch("http://x/to/307", { method: "POST", body: "b" })),
  "redirect 308 of POST": ({ SELF }) => json(SELF.fetch("http://x/to/308", { method: "POST", body: "b" })),
  "redirect to another host": ({ SELF }) => json(SELF.fetch("http://x/to/302?u=" + encodeURIComponent("https://y.test/echo/other"))),
  "redirect manual": async ({ SELF }) => { const r = await SELF.fetch("http://x/to/302", { redirect: "manual" }); return [r.status, r.headers.get("location"), r.type]; },
  "redirect error": ({ SELF }) => fails(SELF.fetch("http://x/to/302", { redirect: "error" })),
  "redirect loop": ({ SELF }) => fails(SELF.fetch("http://x/loop")),
  "redirect of a Request": async ({ SELF }) => (await SELF.fetch(new Request("http://x/to/302", { redirect: "manual" }))).status,
  "redirect without location": async ({ SELF }) => (await SELF.fetch("http://x/status/302")).status,

  // ---- signals ----
  "aborted before": ({ SELF }) => message(SELF.fetch("http://x/slow", { signal: AbortSignal.abort() })),
  "aborted with a reason": ({ SELF }) => message(SELF.fetch("http://x/slow", { signal: AbortSignal.abort(new RangeError("why")) })),
  "aborted while it waits": ({ SELF }) => { const c = new AbortController(); const p = SELF.fetch("http://x/never", { signal: c.signal }); setTimeout(() => c.abort(), 20); return message(p); },
  "timeout": ({ SELF }) => message(SELF.fetch("http://x/never", { signal: AbortSignal.timeout(20) })),
  "aborted after": async ({ SELF }) => { const c = new AbortController(); const r = await SELF.fetch("http://x/text", { signal: c.signal }); const t = await r.text(); c.abort(); return t; },

  // ---- the binding ----
  "typeof": ({ SELF }) => [typeof SELF, typeof SELF.fetch, typeof SELF.any, typeof SELF.then, typeof SELF.constructor, typeof SELF.toString, typeof SELF.connect, typeof SELF.queue, typeof SELF.scheduled, typeof SELF.dup, typeof SELF.catch, typeof SELF.toJSON, typeof SELF.hasOwnProperty, typeof SELF[Symbol.iterator], typeof SELF[Symbol.asyncIterator], typeof SELF[Symbol.toPrimitive]],
  "String": ({ SELF }) => [String(SELF), Object.prototype.toString.call(SELF), SELF.constructor.name],
  "keys": ({ SELF }) => [Object.keys(SELF), Object.getOwnPropertyNames(SELF), [...(function* () { for (const k in SELF) yield k; })()].filter((k) => k !== "fetch" && k !== "connect")],
  "in": ({ SELF }) => ["fetch" in SELF, "any" in SELF, "toString" in SELF],
  "JSON": ({ SELF }) => fails((async () => JSON.stringify(SELF))()),
  "set": ({ SELF }) => fails((async () => { SELF.mine = 5; return typeof SELF.mine; })()),
  "resolve": async ({ SELF }) => (await SELF) === SELF,
  "same": ({ SELF }) => SELF === imported.SELF,
  "detached fetch": async ({ SELF }) => { const { fetch } = SELF; return (await fails(fetch("http://x/text")))[0]; },
  "detached method": async ({ SELF }) => { const { add } = SELF; return fails(add(1, 2)); },
  "construct": ({ SELF }) => fails((async () => new SELF.constructor())()),
  "method then": async ({ SELF }) => { let got; await SELF.add(1, 2).then((v) => { got = v; }); return got; },
  "method catch": ({ SELF }) => SELF.throws("error").catch((e) => e.message),
  "method finally": async ({ SELF }) => { let n = 0; await SELF.add(1, 2).finally(() => n++); return n; },
  "method with a symbol": ({ SELF }) => typeof SELF[Symbol("x")],
  "method by apply": async ({ SELF }) => fails(SELF.add.apply(SELF, [1, 2])),
  "property without a call": async ({ SELF }) => fails(SELF.property),

  // ---- methods ----
  "add": ({ SELF }) => SELF.add(2, 3),
  "async method": ({ SELF }) => SELF.later(5),
  "argument counts": async ({ SELF }) => [await SELF.count(), await SELF.count(1), await SELF.count(undefined), await SELF.count(1, 2, 3), await SELF.count(...Array(100).fill(0))],
  "inherited": ({ SELF }) => SELF.inherited(),
  "overridden": ({ SELF }) => SELF.overridden(),
  "super": ({ SELF }) => SELF.parents(),
  "static": ({ SELF }) => fails(SELF.stat()),
  "own property": ({ SELF }) => fails(SELF.field()),
  "own arrow": ({ SELF }) => fails(SELF.arrow()),
  "own over prototype": ({ SELF }) => fails(SELF.shadowed()),
  "getter": ({ SELF }) => fails(SELF.gets()),
  "getter as property": ({ SELF }) => fails(SELF.gets),
  "prototype value": ({ SELF }) => fails(SELF.value()),
  "prototype value as property": ({ SELF }) => fails(SELF.value),
  "private": ({ SELF }) => SELF.usesPrivate(),
  "private name": ({ SELF }) => fails(SELF["#hidden"]()),
  "missing": ({ SELF }) => message(SELF.missing()),
  "constructor": ({ SELF }) => fails((async () => SELF.constructor())()),
  "__proto__": ({ SELF }) => typeof SELF.__proto__,
  "underscored": ({ SELF }) => SELF._under(),
  "odd names": async ({ SELF }) => [await SELF["a b"](), await SELF["é"](), await SELF["1"]()],
  "empty name": ({ SELF }) => fails((async () => SELF[""]())()),
  "env": ({ SELF }) => fails(SELF.env()),
  "ctx": ({ SELF }) => fails(SELF.ctx()),
  "fetch of the method": async ({ SELF }) => read(await SELF.fetch("http://x/text")),
  "reads env": ({ SELF }) => SELF.readsEnv(),
  "reads ctx": ({ SELF }) => SELF.readsCtx(),
  "new instance": async ({ SELF }) => [await SELF.mark(), await SELF.mark()],
  "waitUntil": ({ SELF }) => SELF.late("now"),
  "waitUntil of fetch": async ({ SELF }) => (await SELF.fetch("http://x/late/fetch")).text(),
  "method calls itself": ({ SELF }) => SELF.deep(3),
  "deep fetch": async ({ SELF }) => read(await SELF.fetch("http://x/depth/5")),
  "eight deep": async ({ SELF }) => read(await SELF.fetch("http://x/depth/7")),
  "nine deep": async ({ SELF }) => fails(SELF.fetch("http://x/depth/8").then(read)),
  "concurrent": async ({ SELF }) => (await Promise.all(Array.from({ length: 20 }, (_, i) => SELF.add(i, 1)))).join(),
  "order": async ({ SELF }) => { const order = []; await Promise.all([SELF.later(1).then(() => order.push(1)), SELF.later(2).then(() => order.push(2))]); return order.length; },
  "not awaited": async ({ SELF }) => { SELF.add(1, 2); return "went on"; },
  "argument changed after": async ({ SELF }) => { const a = [1]; const p = SELF.echo(a); a.push(2); return p; },
  "clone is another": async ({ SELF }) => { const a = {}; return (await SELF.echo(a)) === a; },
  "transfer": async ({ SELF }) => { const b = new Uint8Array([1]).buffer; await SELF.echo(b); return b.byteLength; },
  "large argument": async ({ SELF }) => (await SELF.size(new Uint8Array(4 << 20))),
  "large result": async ({ SELF }) => (await SELF.bytes(4 << 20)).length,
  "too large argument": async ({ SELF }) => (await fails(SELF.size(new Uint8Array(33 << 20))))[0],
  "too large result": async ({ SELF }) => (await fails(SELF.bytes(33 << 20)))[0],
  "function argument": ({ SELF }) => fails(SELF.calls((n) => n + 1)),
  "throwing argument": ({ SELF }) => message((async () => SELF.echo({ get a() { throw new RangeError("got"); } }))()),
  "deep argument": async ({ SELF }) => { let o = {}; const top = o; for (let i = 0; i < 1000; i++) o = o.o = {}; return shown(await SELF.echo(top)); },
  "pipelined": ({ SELF }) => fails(SELF.nested().a),

  // ---- entrypoints ----
  "named method": ({ NAMED }) => NAMED.who(),
  "named fetch": async ({ NAMED }) => read(await NAMED.fetch("http://h/p")),
  "named missing": ({ NAMED }) => message(NAMED.add(1, 2)),
  "named redirect": async ({ NAMED }) => read(await NAMED.fetch("http://h/redirect")),
  "plain fetch": async ({ PLAIN }) => read(await PLAIN.fetch("http://h/p")),
  "plain method": ({ PLAIN }) => fails(PLAIN.who()),
  "bare fetch": async ({ BARE }) => fails(BARE.fetch("http://h/").then(read)),
  "bare method": ({ BARE }) => BARE.only(),
  "throwing constructor": ({ BROKEN }) => message(BROKEN.only()),
  "throwing constructor fetch": ({ BROKEN }) => message(BROKEN.fetch("http://h/")),

  // ---- ctx.exports ----
  "ctx.exports": (env, ctx) => [typeof ctx.exports, Object.keys(ctx.exports).sort(), typeof ctx.exports.default, typeof ctx.exports.Named],
  "ctx.exports same": (env, ctx) => [ctx.exports.default !== undefined && own.default !== undefined, typeof own, Object.keys(own).sort()],
  "ctx.exports method": (env, ctx) => ctx.exports.default.add(2, 3),
  "ctx.exports fetch": async (env, ctx) => read(await ctx.exports.default.fetch("http://x/text")),
  "ctx.exports named": (env, ctx) => ctx.exports.Named.who(),
  "ctx.exports plain": (env, ctx) => [typeof ctx.exports.plain, typeof ctx.exports.constant, typeof ctx.exports.helper, typeof ctx.exports.Unrelated],
  "ctx.exports none": (env, ctx) => [typeof ctx.exports.None, "None" in ctx.exports, typeof ctx.exports.toString],
  "imported exports": () => own.Named.who(),
  "ctx.exports in a method": ({ SELF }) => SELF.viaExports(),
  "ctx.exports with props": (env, ctx) => fails((async () => ctx.exports.Named({ props: { a: 1 } }).props())()),
};

for (const name of Object.keys(throwing)) {
  cases[`fetch throws ${name}`] = async ({ SELF }) => { try { return ["returns", await (await SELF.fetch(`http://x/throw/${encodeURIComponent(name)}`)).text()]; } catch (e) { return ["throws", shown(e)]; } };
  cases[`method throws ${name}`] = async ({ SELF }) => { try { return ["returns", shown(await SELF.throws(name))]; } catch (e) { return ["throws", shown(e)]; } };
}
for (const [name, make] of Object.entries(results)) {
  cases[`returns ${name}`] = async ({ SELF }) => { try { return ["returns", shown(await SELF.returns(name))]; } catch (e) { return ["throws", shown(e)]; } };
  cases[`takes ${name}`] = async (env, ctx) => { try { return ["takes", await env.SELF.takes(make({ env, ctx }))]; } catch (e) { return ["throws", shown(e)]; } };
}

export default class extends Parent {
  #hidden() { return "private"; }
  field = "field";
  arrow = () => "arrow";
  constructor(ctx, env) {
    super(ctx, env);
    this.shadowed = () => "own";
  }
  static stat() { return "static"; }

  async fetch(request) {
    const url = new URL(request.url);
    if (url.host !== "w.test") return answer(request, this.env, this.ctx);
    const at = url.searchParams.get("case"); // its number, because an event may make some calls only; none: all
    const all = {};
    for (const [name, run] of Object.entries(cases).slice(at ?? 0, at === null ? undefined : +at + 1)) {
      try {
        const value = await run(this.env, this.ctx, request);
        all[name] = value === undefined ? "undefined" : value;
      } catch (e) {
        // The messages of TypeErrors are each runtime's own.
        all[name] = e instanceof TypeError ? "throws a TypeError" : `throws ${e?.constructor?.name}: ${e?.message}`;
      }
    }
    return Response.json(all);
  }

  add(a, b) { return a + b; }
  async later(v) { await new Promise((done) => setTimeout(done, 5)); return v; }
  count() { return arguments.length; }
  overridden() { return "child"; }
  parents() { return super.overridden(); }
  shadowed() { return "prototype"; }
  get gets() { return "got"; }
  usesPrivate() { return this.#hidden(); }
  _under() { return "under"; }
  "a b"() { return 1; }
  "é"() { return 2; }
  "1"() { return 3; }
  ""() { return 4; }
  readsEnv() { return [this.env.TEXT, Object.keys(this.env).sort()]; }
  readsCtx() { return [typeof this.ctx.waitUntil, typeof this.ctx.passThroughOnException, typeof this.ctx.props, typeof this.ctx.exports]; }
  mark() { const before = this.marked ?? "new"; this.marked = "used"; return before; }
  late(v) { waitUntil(new Promise((done) => setTimeout(done, 20))); return v; }
  deep(n) { return n === 0 ? "bottom" : this.env.SELF.deep(n - 1); }
  echo(v) { return v; }
  size(v) { return v.byteLength; }
  bytes(n) { return new Uint8Array(n); }
  async calls(f) { return f(1); }
  nested() { return { a: { b: 1 } }; }
  viaExports() { return this.ctx.exports.Named.who(); }
  throws(name) { return throwing[name](); }
  returns(name) { return results[name](this); }
  takes(v) { return shown(v); }
}
Parent.prototype.value = 5;

export class Named extends WorkerEntrypoint {
  fetch(request) {
    const url = new URL(request.url);
    if (url.pathname === "/redirect") return Response.redirect("http://h/redirected", 302);
    return new Response(`named ${url.host} ${url.pathname} ${this.env.TEXT}`);
  }
  who() { return "named"; }
  props() { return this.ctx.props; }
}

export class Bare extends WorkerEntrypoint {
  only() { return "bare"; }
}

export class Broken extends WorkerEntrypoint {
  constructor(ctx, env) { super(ctx, env); throw new RangeError("not made"); }
  only() { return "broken"; }
  fetch() { return new Response("broken"); }
}

export const constant = { a: 1 };

export function helper() {}

export class Unrelated {}

export const plain = {
  fetch(request, env, ctx) { return new Response(`plain ${env.TEXT} ${typeof ctx.waitUntil} ${new URL(request.url).host} ${this === plain}`); },
  who() { return "plain"; },
};
