// exercise uses as much of the platform as one event can, in ways that work. Nothing of it goes through an array's iterator
// or a method of its own values that a caller may have patched in a way that does not work.
const onerror = () => {};

async function exercise(request, env, ctx) {
  const say = [];
  const step = async (name, f) => { try { await f(); } catch (e) { say[say.length] = `${name}: ${e}`; } };
  const bytes = () => new Uint8Array([97, 98, 99]);
  const source = (...list) => new ReadableStream({ start(c) { for (let i = 0; i < list.length; i++) c.enqueue(list[i]); c.close(); } });
  await step("url", () => {
    const url = new URL("../x?a=1&b=2#h", "http://user:pw@münchen.example:81/a/b/c");
    url.searchParams.append("k", "v v"); url.searchParams.sort(); url.hash = "y"; url.host = "[::1]:90"; url.pathname = "/ä";
    for (const [k, v] of url.searchParams) void (k + v);
    void [url.href, url.origin, URL.canParse("x:"), `${new URLSearchParams({ a: "b" })}`, `${new URLSearchParams([["a", "b"]])}`];
  });
  await step("headers", () => {
    const h = new Headers([["a", "b"], ["set-cookie", "x=1"]]);
    h.append("a", "c"); h.set("d", "e"); h.delete("d"); h.forEach(() => {});
    for (const [k, v] of h) void (k + v);
    void [h.get("a"), h.has("x"), h.getSetCookie(), new Headers({ a: "1" }), new Headers(h)];
  });
  await step("bodies", async () => {
    const r = new Request("http://h/", { method: "POST", body: '{"n":1}', headers: { "content-type": "application/json" }, signal: new AbortController().signal });
    await r.clone().json(); await r.clone().text(); await r.clone().blob(); await r.clone().bytes(); await new Request(r).arrayBuffer();
    await Response.json({ a: [1] }, { status: 201, headers: { z: "9" } }).json();
    await new Response(bytes()).blob(); await new Response(new URLSearchParams("a=b")).formData(); await new Response(source(bytes())).text();
    const form = new FormData();
    form.append("f", new File(["file", bytes(), new Blob(["b"])], "n", { type: "text/plain" }), "m"); form.set("s", "t");
    for (const [k, v] of form) void (k + v);
    const back = await new Response(form).formData();
    await back.get("f").text();
    await new Blob(["abc"]).slice(1).stream().getReader().read();
    Response.redirect("http://h/"); Response.error();
  });
  await step("streams", async () => {
    const up = new TransformStream({ transform(x, c) { c.enqueue(x); }, flush() {} }, new CountQueuingStrategy({ highWaterMark: 2 }), new ByteLengthQueuingStrategy({ highWaterMark: 9 }));
    const reader = source("a", "b").pipeThrough(up).getReader();
    await reader.read(); await reader.cancel("x"); reader.releaseLock();
    const [one, two] = source(1, 2).tee();
    for await (const x of one) void x;
    await two.cancel();
    const byob = new ReadableStream({ type: "bytes", pull(c) { if (c.byobRequest) { c.byobRequest.view[0] = 1; c.byobRequest.respond(1); } else { c.enqueue(bytes()); } } });
    const b = byob.getReader({ mode: "byob" });
    await b.read(new Uint8Array(2)); await b.cancel();
    const w = new WritableStream({ write() {}, close() {}, abort() {} }).getWriter();
    await w.ready; await w.write(1); await w.close(); w.releaseLock();
    await source(1).pipeTo(new WritableStream());
    await new WritableStream().abort("why");
    await ReadableStream.from(["x"]).getReader().read();
    await source("é").pipeThrough(new TextEncoderStream()).pipeThrough(new TextDecoderStream()).getReader().read();
    const zipped = await new Response(source(bytes()).pipeThrough(new CompressionStream("gzip"))).bytes();
    await new Response(source(zipped).pipeThrough(new DecompressionStream("gzip"))).text();
    await new ReadableStream({ pull() { throw new Error("pull"); } }).getReader().read().catch(() => {});
  });
  await step("text", () => { void [new TextDecoder("utf-16le").decode(bytes()), new TextDecoder("shift_jis").decode(bytes()), new TextDecoder().decode(new TextEncoder().encode("é")), new TextEncoder().encodeInto("x", bytes()), atob(btoa("x"))]; });
  await step("clone", () => structuredClone({ m: new Map([[1, new Set([2])]]), d: new Date(5), b: bytes().buffer, e: new TypeError("x"), r: /x/g, n: 5n, o: Object(1), v: bytes() }, { transfer: [new ArrayBuffer(1)] }));
  await step("crypto", async () => {
    crypto.randomUUID(); crypto.getRandomValues(bytes());
    await crypto.subtle.digest("SHA-256", bytes());
    const key = await crypto.subtle.importKey("raw", bytes(), { name: "HMAC", hash: "SHA-256" }, true, ["sign", "verify"]);
    await crypto.subtle.verify("HMAC", key, await crypto.subtle.sign("HMAC", key, bytes()), bytes());
    await crypto.subtle.exportKey("raw", key); await crypto.subtle.exportKey("jwk", key);
    const aes = await crypto.subtle.generateKey({ name: "AES-GCM", length: 128 }, true, ["encrypt", "decrypt", "wrapKey"]);
    await crypto.subtle.decrypt({ name: "AES-GCM", iv: new Uint8Array(12) }, aes, await crypto.subtle.encrypt({ name: "AES-GCM", iv: new Uint8Array(12) }, aes, bytes()));
    await crypto.subtle.wrapKey("raw", key, aes, { name: "AES-GCM", iv: new Uint8Array(12) });
    const { privateKey, publicKey } = await crypto.subtle.generateKey({ name: "ECDSA", namedCurve: "P-256" }, true, ["sign", "verify"]);
    await crypto.subtle.verify({ name: "ECDSA", hash: "SHA-256" }, publicKey, await crypto.subtle.sign({ name: "ECDSA", hash: "SHA-256" }, privateKey, bytes()), bytes());
    await crypto.subtle.deriveBits({ name: "PBKDF2", hash: "SHA-256", salt: bytes(), iterations: 10 }, await crypto.subtle.importKey("raw", bytes(), "PBKDF2", false, ["deriveBits"]), 128);
  });
  await step("events", () => {
    addEventListener("error", onerror); addEventListener("unhandledrejection", onerror);
    const target = new EventTarget();
    target.addEventListener("x", () => {}, { once: true, passive: true, signal: new AbortController().signal });
    target.addEventListener("x", { handleEvent() {} });
    target.dispatchEvent(new CustomEvent("x", { detail: 1, cancelable: true }));
    target.dispatchEvent(new ErrorEvent("x", { message: "m", error: 1 }));
    dispatchEvent(new Event("unheard"));
  });
  await step("abort", async () => {
    const c = new AbortController();
    const any = AbortSignal.any([c.signal, AbortSignal.timeout(1e6), AbortSignal.abort()]);
    any.onabort = () => {};
    c.signal.addEventListener("abort", () => {}); c.abort(); void any.reason;
    await new Promise((done) => AbortSignal.timeout(1).addEventListener("abort", done));
  });
  await step("timers", async () => {
    await new Promise((done) => setTimeout(done, 1, 1, 2));
    await new Promise((done) => queueMicrotask(done));
    let n = 0;
    await new Promise((done) => { const i = setInterval(() => { if (++n === 2) { clearInterval(i); done(); } }, 1); });
    clearTimeout(setTimeout(() => {}, 5));
  });
  await step("url pattern", () => {
    for (const p of [new URLPattern("http{s}?://*.h:80/:a(\\d+)?/{b}*\\?x#y", { ignoreCase: true }), new URLPattern({ pathname: "/:ü/*", baseURL: "http://h/a" }), new URLPattern()]) void [p.pathname, p.hasRegExpGroups, p.test("http://h/1/b"), p.exec({ pathname: "/x/y", protocol: "http" })];
    try { new URLPattern("("); } catch { /* known */ }
  });
  await step("messages", async () => {
    const { port1, port2 } = new MessageChannel(), other = new MessageChannel();
    const got = new Promise((done) => { port2.onmessage = (e) => { void [e.data, e.ports]; port2.close(); done(); }; });
    port1.postMessage({ p: other.port1, b: bytes() }, [other.port1]); port1.postMessage(1, { transfer: [new ArrayBuffer(1)] });
    await got;
    void new MessageEvent("x", { ports: [port1], source: port2, data: 1 }).ports;
  });
  await step("performance", async () => {
    performance.mark("a", { detail: { x: 1 } }); performance.measure("m", "a"); performance.measure("m", { start: 0, duration: 1 });
    void [performance.getEntries().length, performance.getEntriesByName("m", "measure")[0].toJSON(), performance.getEntriesByType("mark")[0].detail, navigator.languages];
    performance.clearMarks(); performance.clearMeasures("m"); await scheduler.wait(1, { signal: new AbortController().signal });
  });
  await step("event source", async () => {
    const source = new EventSource("http://127.0.0.1:1/", { withCredentials: true });
    await new Promise((done) => { source.onerror = () => { source.close(); done(); }; });
    void [source.url, source.readyState];
  });
  await step("context", async () => {
    const als = new AsyncLocalStorage({ name: "n" }), v = new AsyncContext.Variable();
    await als.run(1, async () => { await null; v.run(2, () => AsyncLocalStorage.bind(() => {})()); AsyncLocalStorage.snapshot()(() => als.exit(() => {})); new AsyncContext.Snapshot().run(AsyncContext.Snapshot.wrap(() => {})); });
    als.enterWith(2); als.disable();
  });
  await step("console", () => {
    console.log("%s %o %d %j", "text", { a: [1, new Map([[1, 2]])] }, 5, 6, new Error("shown"), new Response("x"), [1, 2, 3], () => {}, class X {}, Symbol("s"), new Proxy({}, {}), bytes(), Promise.resolve(1), new Set([1]));
    console.table([{ a: 1 }]); console.group("g"); console.count(); console.time(); console.timeLog(); console.timeEnd(); console.groupEnd(); console.assert(false, "no"); console.trace("t"); console.dir({}); console.error(new DOMException("x"));
  });
  await step("errors", async () => { reportError(new Error("reported")); Promise.reject(new Error("lost")); await fetch("http://127.0.0.1:1/", { method: "POST", body: "x" }).catch(() => {}); await fetch("ftp://x").catch(() => {}); try { new URL("nowhere"); } catch { /* known */ } });
  await step("env", async () => { if (env?.JOBS) { await env.JOBS.send({ a: 1 }, { headers: { x: "y" } }); await env.JOBS.send("text"); await env.JOBS.send(bytes()); } });
  await step("ctx", () => { ctx?.waitUntil?.(Promise.resolve(1)); ctx?.waitUntil?.(new Promise((done) => setTimeout(done, 1))); });
  await step("import", async () => { await import("nothing").catch(() => {}); void import.meta.url; });
  await step("request", async () => { if (request?.clone) { if (!request.bodyUsed) await request.clone().text(); void [request.url, request.method, request.signal.aborted, new Request(request).headers.get("x")]; } });
  return say;
}
