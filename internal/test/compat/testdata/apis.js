// What docs/reference/cloudflare.md says is the same, for Cloudflare's workerd in miniflare and for Pinwheel. Each case
// returns what can be shown as JSON.
import { WorkerEntrypoint, env as imported, exports as own, waitUntil } from "cloudflare:workers";
import { AsyncLocalStorage } from "node:async_hooks";

const bytes = (...list) => new Uint8Array(list);
const hex = (buffer) => [...new Uint8Array(buffer)].map((b) => b.toString(16).padStart(2, "0")).join("");
const utf8 = (text) => new TextEncoder().encode(text);
const text = (buffer) => new TextDecoder().decode(buffer);

// fails says how a call ends. Messages are each runtime's own, and the type counts: programs test it.
async function fails(call) {
  try {
    const value = await call();
    return value === undefined ? "ok" : value;
  } catch (e) {
    return e instanceof DOMException ? e.name : e.constructor.name;
  }
}

const read = async (stream) => { const list = []; for await (const chunk of stream) list.push(typeof chunk === "string" ? chunk : chunk instanceof Uint8Array ? text(chunk) : chunk); return list; };
const stream = (...parts) => new ReadableStream({ start(c) { for (const part of parts) c.enqueue(part); c.close(); } });
const head = (r) => [r.status, r.ok, r.type, r.url, r.redirected, r.bodyUsed, r.body === null, [...r.headers]];

const topGreeting = imported.GREETING;
let marks = 0;

const entrypoints = {
  "env at the top": () => topGreeting,
  "env in a function": () => imported.GREETING,
  "env of the class": (self) => [self.env.GREETING, self.env.GREETING === imported.GREETING, Object.keys(self.env).sort()],
  "env in a timer": () => new Promise((done) => { setTimeout(() => done(imported.GREETING), 1); }),
  "env has no other": (self) => [typeof self.env.OTHER, "OTHER" in self.env],
  "waitUntil imported": async () => { const before = marks; waitUntil(Promise.resolve().then(() => marks++)); await scheduler.wait(1); return marks - before; },
  "waitUntil of ctx": async (self) => { const before = marks; self.ctx.waitUntil(Promise.resolve().then(() => marks++)); await scheduler.wait(1); return marks - before; },
  "waitUntil of a value": (self) => fails(() => self.ctx.waitUntil(5)),
  "waitUntil of nothing": (self) => fails(() => self.ctx.waitUntil()),
  "waitUntil of a rejection": (self) => fails(() => self.ctx.waitUntil(Promise.reject(new Error("mine")))),
  "waitUntil of a thenable": (self) => fails(() => self.ctx.waitUntil({ then(done) { done(); } })),
  "waitUntil without its object": (self) => fails(() => { const { waitUntil: f } = self.ctx; return f(Promise.resolve()); }),
  "passThroughOnException": (self) => fails(() => self.ctx.passThroughOnException()),
  "props": (self) => [self.ctx.props, Object.keys(self.ctx.props).length],
  "exports are those of ctx": (self) => [own.Named !== undefined, Object.keys(own).sort(), Object.keys(self.ctx.exports).sort()],
  "method of an export": () => own.Named.hello("a"),
  "fetch of an export": async () => (await own.Named.fetch("http://x/a")).text(),
  "a new instance": (self) => { const before = self.used; self.used = true; return before; },
  "members of the instance": (self) => [self instanceof WorkerEntrypoint, Object.keys(self).sort()],
  "constructor of ctx": (self) => [self.ctx.constructor.name, Object.prototype.toString.call(self.ctx)],
  "request of the event": (self, request) => [request.method, request.redirect, request.bodyUsed, request.body === null, request instanceof Request, request.signal instanceof AbortSignal],
  "headers of the event are immutable": (self, request) => fails(() => request.headers.set("a", "b")),
  "copy of the event's request": (self, request) => { const r = new Request(request, { headers: { a: "b" } }); r.headers.set("c", "d"); return [...r.headers]; },
};

const requests = {
  "Request": () => { const r = new Request("http://x/a?b#c"); return [r.method, r.url, r.redirect, r.body === null, [...r.headers], r.cf === undefined]; },
  "Request of a Request": async () => { const r = new Request(new Request("http://x/", { method: "POST", body: "b", headers: { a: "1" } }), { headers: { b: "2" } }); return [r.method, [...r.headers], await r.text()]; },
  "Request of a used Request": () => fails(async () => { const r = new Request("http://x/", { method: "POST", body: "b" }); await r.text(); new Request(r); }),
  "Request with another URL": async () => { const r = new Request("http://y/b", new Request("http://x/a", { method: "PUT", body: "b", headers: { a: "1" } })); return [r.method, r.url, [...r.headers], await r.text()]; },
  "Request without an URL": () => fails(() => new Request().url),
  "Request of a relative URL": () => fails(() => new Request("/a").url),
  "GET with a body": () => fails(() => new Request("http://x/", { body: "b" }).method),
  "method in lower case": () => ["get", "post", "patch", "delete"].map((method) => new Request("http://x/", { method }).method),
  "bad method": () => fails(() => new Request("http://x/", { method: "a b" }).method),
  "redirect of a Request": () => fails(() => ["follow", "manual", "error"].map((redirect) => new Request("http://x/", { redirect }).redirect)),
  "bad redirect": () => fails(() => new Request("http://x/", { redirect: "other" }).redirect),
  "clone of a Request": async () => { const r = new Request("http://x/", { method: "POST", body: "b" }); const c = r.clone(); return [await r.text(), await c.text(), c.method]; },
  "cf of a Request": () => { const cf = { a: { b: 1 } }; const r = new Request("http://x/", { cf }); return [r.cf, new Request(r).cf, r.clone().cf, new Request("http://y/", r).cf]; },
  "signal of a Request": () => { const c = new AbortController(); const r = new Request("http://x/", { signal: c.signal }); c.abort(); return r.signal.aborted; },
  "Response": () => head(new Response("x")),
  "Response of nothing": () => head(new Response()),
  "Response of null": () => head(new Response(null)),
  "Response of undefined": () => head(new Response(undefined)),
  "Response of no text": () => head(new Response("")),
  "Response of bytes": () => head(new Response(bytes(1))),
  "Response of a Blob": () => head(new Response(new Blob(["a"], { type: "text/x" }))),
  "Response of params": () => head(new Response(new URLSearchParams({ a: "b c" }))),
  "Response of a stream": () => head(new Response(stream(bytes(1)))),
  "Response of a number": async () => new Response(5).text(),
  "Response of an object": async () => new Response({ a: 1 }).text(),
  "Response of an async iterable": () => fails(async () => new Response((async function* () { yield utf8("a"); yield utf8("b"); })()).text()),
  "Response with a statusText": () => { const r = new Response("x", { status: 299, statusText: "Odd" }); return [r.statusText, r.clone().statusText]; },
  "statusText that nobody set": () => new Response("x").statusText,
  "statusText beyond ASCII": () => fails(() => new Response("x", { statusText: "€" }).statusText),
  "status 199": () => fails(() => new Response("", { status: 199 }).status),
  "status 600": () => fails(() => new Response("", { status: 600 }).status),
  "status of a text": () => fails(() => new Response("", { status: "201" }).status),
  "204 with a body": () => fails(() => new Response("x", { status: 204 }).status),
  "204 with no text": () => fails(() => new Response("", { status: 204 }).status),
  "Response with headers": () => [...new Response("x", { headers: [["B", "1"], ["a", "2"], ["b", "3"], ["Set-Cookie", "x"], ["set-cookie", "y"]] }).headers],
  "cf of a Response": () => { const r = new Response("", { cf: { a: 1 } }); return [r.cf, r.clone().cf, new Response("", r).cf]; },
  "no cf of a Response": () => [typeof new Response("").cf, typeof Response.json({}).cf, typeof Response.redirect("http://x/").cf],
  "cf null of a Response": () => fails(() => String(new Response("", { cf: null }).cf)),
  "cf of a Response that is no object": () => fails(() => new Response("", { cf: 5 }).cf),
  "cf by Response.json": () => Response.json({}, { cf: { a: 1 } }).cf,
  "cf of a Response by a service": async () => String((await own.Named.fetch("http://x/cf")).cf),
  "Response.json": async () => { const r = Response.json({ a: [1] }, { status: 201, headers: { b: "c" } }); return [head(r), await r.text()]; },
  "Response.json of undefined": () => fails(() => Response.json(undefined).status),
  "Response.redirect": () => head(Response.redirect("http://x/a b", 303)),
  "Response.redirect of a relative URL": () => fails(() => Response.redirect("/a").headers.get("location")),
  "Response.redirect with another status": () => fails(() => Response.redirect("http://x/", 200).status),
  "Response.error": () => head(Response.error()),
  "body read twice": () => fails(async () => { const r = new Response("x"); await r.text(); return r.text(); }),
  "bodyUsed": async () => { const r = new Response("x"); const before = r.bodyUsed; await r.text(); return [before, r.bodyUsed]; },
  "text with a BOM": async () => (await new Response(bytes(0xef, 0xbb, 0xbf, 97)).text()).length,
  "json that is none": () => fails(() => new Response("{").json()),
  "bytes of a body": () => fails(async () => [...await new Response("ab").bytes()]),
  "blob of a body": async () => { const b = await new Response("ab", { headers: { "content-type": "text/x" } }).blob(); return [b.size, b.type]; },
  "formData of a body": async () => [...await new Response(new URLSearchParams({ a: "1", b: "é" })).formData()],
  "multipart": async () => { const f = new FormData(); f.set("a", "1"); f.set("f", new File(["x"], "n.txt", { type: "text/x" })); const g = await new Response(f).formData(); const file = g.get("f"); return [g.get("a"), file.name, file.type, await file.text(), file instanceof File]; },
  "clone of a Response": async () => { const r = new Response("ab"); const c = r.clone(); return [await r.text(), await c.text()]; },
  "clone of a used Response": () => fails(async () => { const r = new Response("ab"); await r.text(); r.clone(); }),
  "fetch of data": async () => { const r = await fetch("data:text/x;base64,aGk="); return [r.status, r.headers.get("content-type"), await r.text()]; },
  "fetch of a relative URL": () => fails(() => fetch("/a")),
  "fetch of another scheme": () => fails(() => fetch("ftp://x/")),
  "fetch that is aborted": () => fails(() => fetch("http://x.invalid/", { signal: AbortSignal.abort() })),
  "Headers": () => { const h = new Headers({ B: "1", a: " 2 " }); h.append("b", "3"); h.set("c", "x"); h.delete("c"); return [[...h], h.get("B"), h.get("none"), h.has("A")]; },
  "Headers of pairs": () => [...new Headers([["a", "1"], ["a", "2"]])],
  "Headers of a bad pair": () => fails(() => [...new Headers([["a"]])]),
  "Headers with a bad name": () => fails(() => [...new Headers({ "a b": "1" })]),
  "Headers with a bad value": () => fails(() => [...new Headers({ a: "1\n2" })]),
  "Headers with a cookie": () => { const h = new Headers(); h.append("set-cookie", "a"); h.append("Set-Cookie", "b"); return [h.getSetCookie(), h.get("set-cookie"), [...h]]; },
  "Headers of undefined": () => fails(() => [...new Headers(undefined)]),
  "Headers of null": () => fails(() => [...new Headers(null)]),
  "FormData": () => { const f = new FormData(); f.append("a", "1"); f.append("a", "2"); f.set("b", 5); f.delete("c"); return [[...f], f.get("a"), f.getAll("a"), f.has("b"), f.get("none")]; },
  "FormData with a Blob": () => { const f = new FormData(); f.set("a", new Blob(["x"], { type: "text/x" })); f.set("b", new Blob(["y"]), "n"); return [f.get("a").name, f.get("a").type, f.get("b").name]; },
  "WebSocket of a bad URL": () => fails(() => { new WebSocket("x"); }),
  "WebSocket of another scheme": () => fails(() => { new WebSocket("ftp://x/"); }),
  "WebSocket with a fragment": () => fails(() => { new WebSocket("ws://x/#a"); }),
  "WebSocket with a bad protocol": () => fails(() => { new WebSocket("ws://x/", "a b"); }),
  "WebSocket with a protocol twice": () => fails(() => { new WebSocket("ws://x/", ["a", "a"]); }),
  "EventSource of a bad URL": () => fails(() => { new EventSource("x"); }),
  "EventSource.from": () => typeof EventSource.from,
};

const streams = {
  "ReadableStream": () => read(stream("a", "b")),
  "ReadableStream.from": () => fails(() => read(ReadableStream.from(["a", "b"]))),
  "tee": async () => { const [a, b] = stream("a", "b").tee(); return [await read(a), await read(b)]; },
  "cancel": async () => { let why; const s = new ReadableStream({ cancel(reason) { why = reason; } }); await s.cancel("mine"); return why; },
  "locked": () => { const s = stream(); s.getReader(); return [s.locked, (() => { try { s.getReader(); } catch (e) { return e.constructor.name; } })()]; },
  "pipeThrough": () => read(stream("a", "b").pipeThrough(new TransformStream({ transform(c, t) { t.enqueue(c + c); }, flush(t) { t.enqueue("end"); } }))),
  "pipeTo": async () => { const list = []; await stream("a", "b").pipeTo(new WritableStream({ write(c) { list.push(c); }, close() { list.push("closed"); } })); return list; },
  "pipeTo that fails": () => fails(() => stream("a").pipeTo(new WritableStream({ write() { throw new RangeError("mine"); } }))),
  "error of a source": () => fails(() => read(new ReadableStream({ pull() { throw new RangeError("mine"); } }))),
  "BYOB": async () => { const s = new ReadableStream({ type: "bytes", start(c) { c.enqueue(bytes(1, 2, 3)); c.close(); } }); const r = s.getReader({ mode: "byob" }); const { value, done } = await r.read(new Uint8Array(2)); return [[...value], done]; },
  "strategy": () => { const s = new WritableStream({}, new CountQueuingStrategy({ highWaterMark: 3 })); return s.getWriter().desiredSize; },
  "writer": async () => { const list = []; const w = new WritableStream({ write(c) { list.push(c); } }).getWriter(); await w.write(1); await w.close(); return [list, await w.closed === undefined]; },
  "abort": async () => { let why; const w = new WritableStream({ abort(reason) { why = reason; } }); await w.abort("mine"); return why; },
  "gzip": async () => text(await new Response(new Response("a".repeat(20)).body.pipeThrough(new CompressionStream("gzip")).pipeThrough(new DecompressionStream("gzip"))).arrayBuffer()),
  "deflate": async () => text(await new Response(new Response("ab").body.pipeThrough(new CompressionStream("deflate")).pipeThrough(new DecompressionStream("deflate"))).arrayBuffer()),
  "deflate-raw": async () => text(await new Response(new Response("ab").body.pipeThrough(new CompressionStream("deflate-raw")).pipeThrough(new DecompressionStream("deflate-raw"))).arrayBuffer()),
  "other compression": () => fails(() => { new CompressionStream("other"); }),
  "bad gzip": () => fails(() => new Response(new Response("none").body.pipeThrough(new DecompressionStream("gzip"))).text()),
  "TextEncoderStream": async () => (await read(stream("a", "é").pipeThrough(new TextEncoderStream()))).join(""),
  "TextDecoderStream": async () => (await read(stream(bytes(0xc3), bytes(0xa9)).pipeThrough(new TextDecoderStream()))).join(""),
  "TextDecoderStream fatal": () => fails(() => read(stream(bytes(0xff)).pipeThrough(new TextDecoderStream("utf-8", { fatal: true })))),
  "FixedLengthStream of bytes": async () => { const { readable, writable } = new FixedLengthStream(2); const w = writable.getWriter(); w.write(utf8("ab")); w.close(); return new Response(readable).text(); },
  "FixedLengthStream of a bad length": () => fails(() => { new FixedLengthStream(-1); }),
};

const globals = {
  "digests": async () => { const all = {}; for (const name of ["MD5", "SHA-1", "SHA-256", "SHA-384", "SHA-512"]) all[name] = hex(await crypto.subtle.digest(name, utf8("a"))); return all; },
  "digest of another name": () => fails(() => crypto.subtle.digest("SHA-3", bytes())),
  "HMAC": async () => { const key = await crypto.subtle.importKey("raw", utf8("k"), { name: "HMAC", hash: "SHA-256" }, false, ["sign", "verify"]); const sum = await crypto.subtle.sign("HMAC", key, utf8("a")); return [hex(sum), await crypto.subtle.verify("HMAC", key, sum, utf8("a")), await crypto.subtle.verify("HMAC", key, sum, utf8("b"))]; },
  "AES-GCM": async () => { const key = await crypto.subtle.importKey("raw", new Uint8Array(16), "AES-GCM", false, ["encrypt", "decrypt"]); const iv = new Uint8Array(12); const c = await crypto.subtle.encrypt({ name: "AES-GCM", iv }, key, utf8("a")); return [hex(c), text(await crypto.subtle.decrypt({ name: "AES-GCM", iv }, key, c))]; },
  "AES-GCM of other bytes": () => fails(async () => { const key = await crypto.subtle.importKey("raw", new Uint8Array(16), "AES-GCM", false, ["decrypt"]); await crypto.subtle.decrypt({ name: "AES-GCM", iv: new Uint8Array(12) }, key, new Uint8Array(20)); }),
  "PBKDF2": async () => { const key = await crypto.subtle.importKey("raw", utf8("p"), "PBKDF2", false, ["deriveBits"]); return hex(await crypto.subtle.deriveBits({ name: "PBKDF2", hash: "SHA-256", salt: utf8("s"), iterations: 2 }, key, 128)); },
  "ECDSA": async () => { const { privateKey, publicKey } = await crypto.subtle.generateKey({ name: "ECDSA", namedCurve: "P-256" }, true, ["sign", "verify"]); const s = await crypto.subtle.sign({ name: "ECDSA", hash: "SHA-256" }, privateKey, utf8("a")); return [s.byteLength, await crypto.subtle.verify({ name: "ECDSA", hash: "SHA-256" }, publicKey, s, utf8("a"))]; },
  "Ed25519": async () => { const { privateKey, publicKey } = await crypto.subtle.generateKey("Ed25519", true, ["sign", "verify"]); const s = await crypto.subtle.sign("Ed25519", privateKey, utf8("a")); return [s.byteLength, await crypto.subtle.verify("Ed25519", publicKey, s, utf8("a"))]; },
  "JWK": async () => { const key = await crypto.subtle.importKey("raw", bytes(1, 2), { name: "HMAC", hash: "SHA-256" }, true, ["sign"]); const jwk = await crypto.subtle.exportKey("jwk", key); return Object.fromEntries(Object.entries(jwk).sort()); },
  "randomUUID": () => /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(crypto.randomUUID()),
  "getRandomValues": () => { const a = new Uint32Array(4); return [crypto.getRandomValues(a) === a, a.some((v) => v !== 0)]; },
  "getRandomValues of floats": () => fails(() => crypto.getRandomValues(new Float32Array(1))),
  "getRandomValues of much": () => fails(() => crypto.getRandomValues(new Uint8Array(65537))),
  "DigestStream": async () => { const s = new crypto.DigestStream("MD5"); await new Response("a").body.pipeTo(s); return hex(await s.digest); },
  "timingSafeEqual of lengths": () => fails(() => crypto.subtle.timingSafeEqual(bytes(1), bytes(1, 2))),
  "setTimeout with arguments": () => new Promise((done) => { setTimeout((...args) => done(args), 1, 1, "a"); }),
  "clearTimeout": async () => { let ran = false; const t = setTimeout(() => { ran = true; }, 1); clearTimeout(t); await scheduler.wait(5); return ran; },
  "order of timers": async () => { const list = []; await new Promise((done) => { setTimeout(() => list.push("timer"), 0); setTimeout(done, 5); queueMicrotask(() => list.push("microtask")); list.push("now"); }); return list; },
  "setInterval": () => new Promise((done) => { let n = 0; const t = setInterval(() => { if (++n === 3) { clearInterval(t); done(n); } }, 1); }),
  "setTimeout of a text": () => fails(() => { setTimeout("1", 1); }),
  "queueMicrotask of nothing": () => fails(() => { queueMicrotask(); }),
  "setImmediate": async () => new Promise((done) => { setImmediate((...args) => done(args), 1); }),
  "scheduler.wait": async () => [await scheduler.wait(1) === undefined, await fails(() => scheduler.wait(1000, { signal: AbortSignal.abort() }))],
  "structuredClone": () => { const v = structuredClone({ d: new Date(0), m: new Map([[1, new Set([2])]]), e: new RangeError("x"), b: bytes(1), r: /a/g, u: undefined }); return [v.d instanceof Date, [...v.m][0][1].has(2), v.e instanceof RangeError, [...v.b], String(v.r), "u" in v]; },
  "structuredClone of a function": () => fails(() => structuredClone(() => 1)),
  "structuredClone that transfers": () => { const b = new ArrayBuffer(2); const c = structuredClone(b, { transfer: [b] }); return [b.byteLength, c.byteLength]; },
  "atob and btoa": () => [atob(" YQ = = "), btoa("\xff"), atob("")],
  "bad atob": () => fails(() => atob("a")),
  "bad btoa": () => fails(() => btoa("€")),
  "reportError": () => fails(() => reportError(new Error("mine"))),
  "AsyncLocalStorage": async () => { const s = new AsyncLocalStorage(); const list = []; await s.run(1, async () => { await null; list.push(s.getStore()); await scheduler.wait(1); list.push(s.getStore()); s.run(2, () => list.push(s.getStore())); list.push(s.exit(() => s.getStore()) ?? "none"); }); list.push(s.getStore() ?? "none"); return list; },
  "AsyncLocalStorage.bind": () => { const s = new AsyncLocalStorage(); const f = s.run(1, () => AsyncLocalStorage.bind(() => s.getStore())); const snap = s.run(2, () => AsyncLocalStorage.snapshot()); return [f(), snap(() => s.getStore())]; },
  "URL": () => { const u = new URL("../b?c=1#d", "http://u:p@x:80/a/e"); u.searchParams.append("f", "é"); return [u.href, u.origin, u.port, u.host]; },
  "bad URL": () => fails(() => new URL("x").href),
  "URL.canParse": () => [URL.canParse("x"), URL.canParse("x", "http://y/"), URL.parse("x")],
  "URLSearchParams": () => { const p = new URLSearchParams("?a=1&b=2&a=3"); p.sort(); p.delete("a", "1"); return [p.toString(), p.size, p.has("a", "3"), p.getAll("a")]; },
  "URLPattern": () => { const p = new URLPattern({ pathname: "/a/:id" }); return [p.test("http://x/a/5"), p.exec("http://x/a/5").pathname.groups, p.test("http://x/b")]; },
  "EventTarget": () => { const t = new EventTarget(); const list = []; t.addEventListener("a", (e) => { list.push(e.type, e.target === t, e.cancelable); e.preventDefault(); }, { once: true }); return [t.dispatchEvent(new Event("a", { cancelable: true })), t.dispatchEvent(new Event("a")), list]; },
  "CustomEvent": () => { const e = new CustomEvent("a", { detail: 5 }); return [e.detail, e.type, e instanceof Event]; },
  "AbortSignal.any": () => { const a = new AbortController(); const s = AbortSignal.any([a.signal, new AbortController().signal]); a.abort("why"); return [s.aborted, s.reason]; },
  "AbortSignal.timeout": async () => { const s = AbortSignal.timeout(1); await new Promise((done) => { s.onabort = done; }); return s.reason.name; },
  "AbortSignal.abort": () => { const s = AbortSignal.abort(); return [s.reason.name, (() => { try { s.throwIfAborted(); } catch (e) { return e.name; } })()]; },
  "MessageChannel": async () => { const { port1, port2 } = new MessageChannel(); const came = new Promise((done) => { port2.onmessage = (e) => done(e.data); }); port1.postMessage({ a: [1] }); const v = await came; port1.close(); return v; },
  "addEventListener on the global object": () => { let got; const f = (e) => { got = e.type; }; addEventListener("mine", f); dispatchEvent(new Event("mine")); removeEventListener("mine", f); return got; },
  "eval": () => fails(() => (0, eval)("1")),
  "new Function": () => fails(() => new Function("return 1")()),
  "TextDecoder": () => [new TextDecoder("utf-16le").decode(bytes(97, 0)), new TextDecoder("windows-1252").decode(bytes(0x80)), new TextDecoder().encoding],
  "TextDecoder fatal": () => fails(() => new TextDecoder("utf-8", { fatal: true }).decode(bytes(0xff))),
  "Blob": async () => { const b = new Blob(["ab", bytes(99)], { type: "Text/X" }); return [b.size, b.type, await b.slice(1, 3).text()]; },
  "File": () => { const f = new File(["a"], "n", { type: "t/x", lastModified: 5 }); return [f.name, f.type, f.lastModified, f instanceof Blob]; },
  "DOMException": () => { const e = new DOMException("m", "AbortError"); return [e.name, e.message, e.code, e instanceof Error]; },
  "console": () => Object.keys(console).includes("log") && typeof console.table,
  "self": () => [self === globalThis, typeof window, typeof document],
  "performance": () => [typeof performance.now(), typeof performance.timeOrigin, typeof performance.mark],
  "Date.now": () => Math.abs(Date.now() - performance.timeOrigin - performance.now()) < 1e12,
  "unhandled rejection": async () => { const came = new Promise((done) => addEventListener("unhandledrejection", (e) => { e.preventDefault(); done([e.constructor.name, e.reason.message]); }, { once: true })); Promise.reject(new Error("mine")); return came; },
};

const cases = { ...entrypoints, ...requests, ...streams, ...globals };

export class Named extends WorkerEntrypoint {
  hello(name) { return `hello ${name}`; }
  fetch(request) { return new Response(new URL(request.url).pathname, { cf: { a: 1 } }); }
}

export default class extends WorkerEntrypoint {
  used = false;
  async fetch(request) {
    const all = {};
    for (const [name, run] of Object.entries(cases)) {
      try {
        const value = await Promise.race([run(this, request), scheduler.wait(20_000).then(() => "no answer")]);
        all[name] = value === undefined ? "undefined" : value;
      } catch (e) {
        all[name] = `throws ${e?.constructor?.name}: ${e?.message}`;
      }
    }
    return Response.json(all);
  }
}
