// Request.

test("construction from strings", () => {
  const r = new Request("http://h:80/a/../b?q#f");
  assert.deepEqual([r.url, r.method, r.redirect, r.mode, r.credentials, r.cache, r.referrer, r.referrerPolicy, r.integrity, r.keepalive, r.destination, r.duplex, r.bodyUsed, r.body],
    ["http://h/b?q#f", "GET", "follow", "cors", "same-origin", "default", "about:client", "", "", false, "", "half", false, null]);
  assert.ok(r.headers instanceof Headers && r.headers === r.headers);
  assert.ok(r.signal instanceof AbortSignal && r.signal === r.signal && !r.signal.aborted);
  assert.equal(new Request(new URL("http://h/x")).url, "http://h/x");
  for (const bad of ["", "/x", "http://", "http://u:p@h/", "http://u@h/"]) assert.throws(() => new Request(bad), TypeError, bad);
  assert.throws(() => new Request(), TypeError);
  assert.throws(() => new Request("http://h/", 5), TypeError);
});

test("methods", () => {
  const cases = { get: "GET", Post: "POST", delete: "DELETE", head: "HEAD", options: "OPTIONS", put: "PUT", patch: "patch", PATCH: "PATCH", "x!": "x!" };
  for (const [given, method] of Object.entries(cases)) assert.equal(new Request("http://h/", { method: given }).method, method);
  for (const bad of ["", "a b", "CONNECT", "trace", "Track", "é", "a\n"]) assert.throws(() => new Request("http://h/", { method: bad }), TypeError, bad);
});

test("enumerations", () => {
  for (const [key, bad] of [["mode", "x"], ["mode", "navigate"], ["credentials", "x"], ["cache", ""], ["redirect", "Follow"], ["referrerPolicy", "x"], ["duplex", "full"]]) {
    assert.throws(() => new Request("http://h/", { [key]: bad }), TypeError, key);
  }
  const r = new Request("http://h/", { mode: "no-cors", credentials: "omit", cache: "no-store", redirect: "manual", referrerPolicy: "origin", integrity: "i", keepalive: 1, referrer: "http://r/" });
  assert.deepEqual([r.mode, r.credentials, r.cache, r.redirect, r.referrerPolicy, r.integrity, r.keepalive, r.referrer],
    ["no-cors", "omit", "no-store", "manual", "origin", "i", true, "http://r/"]);
  assert.equal(new Request("http://h/", { referrer: "" }).referrer, "");
  assert.throws(() => new Request("http://h/", { referrer: "bad" }), TypeError);
  assert.throws(() => new Request("http://h/", { window: {} }), TypeError);
  assert.equal(new Request("http://h/", { window: null }).method, "GET");
  assert.throws(() => new Request("http://h/", { cache: "only-if-cached" }), TypeError);
});

test("bodies", async () => {
  const post = (body, init) => new Request("http://h/", { method: "POST", body, ...init });
  const cases = [["text", "text/plain;charset=UTF-8"], [new URLSearchParams("a=b"), "application/x-www-form-urlencoded;charset=UTF-8"], [new Blob(["x"], { type: "t/y" }), "t/y"],
    [new Blob(["x"]), null], [new Uint8Array(2), null], [new ArrayBuffer(1), null], [new DataView(new ArrayBuffer(1)), null], [5, "text/plain;charset=UTF-8"], [{}, "text/plain;charset=UTF-8"]];
  for (const [body, type] of cases) assert.equal(post(body).headers.get("content-type"), type, String(body));
  assert.equal(post("x", { headers: { "Content-Type": "a/b" } }).headers.get("content-type"), "a/b");
  assert.equal(await post({}).text(), "[object Object]");
  assert.equal(await post("").text(), "");
  assert.equal(post(null).body, null);
  assert.equal(post(undefined).body, null);
  for (const method of ["GET", "HEAD", "get"]) assert.throws(() => new Request("http://h/", { method, body: "x" }), TypeError);
  assert.equal(new Request("http://h/", { body: null }).body, null);
  assert.equal(post(new ReadableStream()).duplex, "half", "is not asked for");
  assert.throws(() => post(new ReadableStream(), { duplex: "half", keepalive: true }), TypeError);
  assert.equal(post(new ReadableStream(), { duplex: "half" }).headers.get("content-type"), null);
});

test("from another request", async () => {
  const a = new Request("http://h/", { method: "POST", body: "b", headers: { x: "1" }, redirect: "error" });
  const b = new Request(a, { headers: { y: "2" } });
  assert.equal(a.bodyUsed, true);
  assert.deepEqual([b.method, b.redirect, b.headers.get("x"), b.headers.get("y"), await b.text()], ["POST", "error", null, "2", "b"]);
  assert.throws(() => new Request(a), TypeError);
  const c = new Request("http://h/", { method: "POST", body: "old" });
  const d = new Request(c, { body: "new", method: "PUT" });
  assert.deepEqual([await d.text(), d.method, c.bodyUsed], ["new", "PUT", false]);
  assert.throws(() => new Request(c, { method: "GET" }), TypeError);
  const e = new Request(c);
  e.headers.set("only", "e");
  assert.equal(c.headers.has("only"), false);
  const s = new Request("http://h/", { method: "POST", duplex: "half", body: new Response("stream").body });
  const t = new Request(s);
  assert.equal(await t.text(), "stream");
  assert.equal(s.bodyUsed, true);
});

test("signals", () => {
  const c = new AbortController();
  const a = new Request("http://h/", { signal: c.signal });
  const b = new Request(a);
  const d = a.clone();
  assert.notEqual(a.signal, c.signal);
  c.abort("r");
  assert.deepEqual([a.signal.aborted, b.signal.reason, d.signal.reason], [true, "r", "r"]);
  assert.equal(new Request(a, { signal: null }).signal.aborted, false);
  assert.throws(() => new Request("http://h/", { signal: {} }), TypeError);
  assert.equal(new Request("http://h/", { signal: AbortSignal.abort(3) }).signal.reason, 3);
});

test("clone", async () => {
  const a = new Request("http://h/", { method: "POST", body: new Uint8Array([97, 98]), headers: { x: "1" } });
  const b = a.clone();
  b.headers.set("x", "2");
  assert.equal(a.headers.get("x"), "1");
  const x = await a.bytes();
  x[0] = 0;
  assert.equal(await b.text(), "ab");
  assert.throws(() => a.clone(), TypeError);
  const s = new Request("http://h/", { method: "POST", duplex: "half", body: new Response("st").body });
  const t = s.clone();
  assert.deepEqual([await s.text(), await t.text()], ["st", "st"]);
});

test("members are read in order, once", () => {
  const order = [];
  new Request("http://h/", new Proxy({}, { get(_, key) { order.push(key); return undefined; } }));
  assert.deepEqual(order, ["body", "cache", "cf", "credentials", "duplex", "headers", "integrity", "keepalive", "method", "mode", "priority", "redirect", "referrer", "referrerPolicy", "signal", "window"]);
});

test("receivers and subclasses", async () => {
  assert.throws(() => Object.getOwnPropertyDescriptor(Request.prototype, "url").get.call(new Response()), TypeError);
  await assert.rejects(Request.prototype.text.call({}), TypeError);
  await assert.rejects(Request.prototype.json.call(new Response("1")), TypeError);
  class Mine extends Request { constructor(...args) { super(...args); this.mine = true; } }
  const m = new Mine("http://h/x");
  assert.deepEqual([m.url, m.mine, m instanceof Request], ["http://h/x", true, true]);
  assert.ok(!(m.clone() instanceof Mine));
});

test("priority is read, and checked", () => {
  for (const priority of ["high", "low", "auto", undefined]) assert.ok(new Request("http://h/", { priority }) instanceof Request);
  for (const priority of ["", "HIGH", null, 5]) assert.throws(() => new Request("http://h/", { priority }), TypeError);
});

test("referrer and its policy are not taken over by a request that is changed", () => {
  const first = new Request("http://h/", { referrer: "", referrerPolicy: "origin", cache: "no-store" });
  assert.deepEqual([first.referrer, first.referrerPolicy], ["", "origin"]);
  for (const init of [undefined, null, {}, { method: undefined }, { other: 1 }]) {
    const r = new Request(first, init);
    assert.deepEqual([r.referrer, r.referrerPolicy, r.cache], ["", "origin", "no-store"]);
  }
  for (const init of [{ method: "GET" }, { headers: {} }, { signal: null }, { window: null }, { priority: "low" }, { cache: "no-store" }, { duplex: "half" }, { body: null }]) {
    const r = new Request(first, init);
    assert.deepEqual([r.referrer, r.referrerPolicy, r.cache], ["about:client", "", "no-store"], JSON.stringify(init));
  }
  assert.deepEqual([new Request(first, { referrerPolicy: "unsafe-url" }).referrer, new Request(first, { referrer: "" }).referrer], ["about:client", ""]);
});

test("mode no-cors", () => {
  for (const method of ["PUT", "DELETE", "OPTIONS", "PATCH"]) assert.throws(() => new Request("http://a/", { mode: "no-cors", method }), TypeError, method);
  for (const method of ["get", "HEAD", "post"]) assert.equal(new Request("http://a/", { mode: "no-cors", method }).mode, "no-cors");
  assert.throws(() => new Request(new Request("http://a/", { method: "PUT" }), { mode: "no-cors" }), TypeError);
  assert.throws(() => new Request("http://a/", { mode: "no-cors", method: "POST", duplex: "half", body: new ReadableStream() }), TypeError);
});

test("what a request was made with holds for those made of it", () => {
  const cached = new Request("http://a/", { cache: "only-if-cached", mode: "same-origin" });
  assert.equal(new Request(cached).cache, "only-if-cached");
  assert.throws(() => new Request(cached, { mode: "cors" }), TypeError);
  const kept = new Request("http://a/", { keepalive: true });
  const body = new ReadableStream();
  assert.throws(() => new Request(kept, { method: "POST", duplex: "half", body }), TypeError);
  assert.equal(body.locked, false);
});

test("bodies and headers are converted where their members are read", () => {
  const seen = [];
  const noted = (name, value) => ({ toString() { seen.push(name); return value; } });
  const request = new Request("http://a/", { method: noted("method", "POST"), headers: { a: noted("header", "1") }, body: noted("body", "b"), mode: noted("mode", "cors") });
  assert.deepEqual(seen, ["body", "header", "method", "mode"]);
  assert.equal(request.headers.get("a"), "1");
});

test("cf, of Cloudflare", async () => {
  assert.equal(new Request("http://h/").cf, undefined);
  const cf = { a: 1 };
  const given = new Request("http://h/", { cf });
  assert.equal(given.cf, cf);
  assert.equal(new Request(given).cf, cf);
  assert.equal(given.clone().cf, cf);
  assert.deepEqual(new Request(given, { cf: { b: 2 } }).cf, { b: 2 });
  assert.equal(new Request(given, { method: "PUT" }).cf, cf);
  for (const bad of [3, "a", null, true]) assert.throws(() => new Request("http://h/", { cf: bad }), TypeError);
  assert.throws(() => { given.cf = 3; }, TypeError);
  assert.equal(await (await fetch("data:,x", { cf })).text(), "x");
  await assert.rejects(fetch("data:,x", { cf: 3 }), TypeError);
});
