// Response.

test("construction", () => {
  const r = new Response();
  assert.deepEqual([r.status, r.statusText, r.ok, r.type, r.url, r.redirected, r.body, r.bodyUsed], [200, "", true, "default", "", false, null, false]);
  assert.deepEqual([...r.headers], []);
  assert.equal(r.headers, r.headers);
  const s = new Response("x", { status: 404, statusText: "Nö", headers: { a: "b" } });
  assert.deepEqual([s.status, s.statusText, s.ok, [...s.headers]], [404, "Nö", false, [["a", "b"], ["content-type", "text/plain;charset=UTF-8"]]]);
  for (const bad of [199, 600, 0, 1000, -1, NaN, "x", 100, 101]) assert.throws(() => new Response(null, { status: bad }), RangeError, String(bad));
  assert.equal(new Response(null, { status: 65736 }).status, 200);
  assert.equal(new Response(null, { status: "204" }).status, 204);
  for (const bad of ["\n", "a\0", "\x7f", "Ā"]) assert.throws(() => new Response(null, { statusText: bad }), TypeError, JSON.stringify(bad));
  assert.throws(() => new Response("x", 5), TypeError);
  assert.equal(new Response("x", null).status, 200);
  assert.throws(() => new Response("x", { headers: { "a b": "" } }), TypeError);
});

test("statuses without bodies", () => {
  for (const status of [204, 205, 304]) {
    assert.throws(() => new Response("x", { status }), TypeError);
    assert.equal(new Response("", { status }).body, null);
    assert.equal(new Response(null, { status }).status, status);
    assert.equal(new Response(undefined, { status }).body, null);
  }
});

test("content types", () => {
  const type = (...args) => new Response(...args).headers.get("content-type");
  assert.equal(type("x"), "text/plain;charset=UTF-8");
  assert.equal(type("x", { headers: { "content-type": "a/b" } }), "a/b");
  assert.equal(type("x", { headers: new Headers({ "Content-Type": "" }) }), "");
  assert.equal(type(new Uint8Array(1)), null);
  assert.equal(type(new Blob(["x"], { type: "X/Y" })), "x/y");
  assert.equal(type(new URLSearchParams()), "application/x-www-form-urlencoded;charset=UTF-8");
  assert.equal(type(null), null);
  assert.equal(type(new ReadableStream()), null);
});

test("Response.json", async () => {
  const r = Response.json({ a: [1] });
  assert.deepEqual([r.status, r.headers.get("content-type"), await r.text()], [200, "application/json", '{"a":[1]}']);
  const s = Response.json(null, { status: 201, headers: { "Content-Type": "x/json" } });
  assert.deepEqual([s.status, s.headers.get("content-type"), await s.json()], [201, "x/json", null]);
  for (const bad of [undefined, () => {}, Symbol()]) assert.throws(() => Response.json(bad), TypeError);
  assert.throws(() => Response.json(), TypeError);
  assert.throws(() => Response.json(1n), TypeError);
  assert.throws(() => Response.json(1, { status: 204 }), TypeError);
  assert.throws(() => Response.json(1, { status: 99 }), RangeError);
  const cycle = {};
  cycle.cycle = cycle;
  assert.throws(() => Response.json(cycle), TypeError);
  assert.equal(await Response.json({ toJSON: () => "t" }).text(), '"t"');
  assert.equal(Response.json("x").headers.has("content-type"), true);
});

test("Response.error and Response.redirect", () => {
  const e = Response.error();
  assert.deepEqual([e.type, e.status, e.ok, e.statusText, e.body], ["error", 0, false, "", null]);
  assert.throws(() => e.headers.set("a", "b"), TypeError);
  const r = Response.redirect("http://h/a b");
  assert.deepEqual([r.status, r.headers.get("location"), r.type], [302, "http://h/a%20b", "default"]);
  assert.throws(() => r.headers.append("a", "b"), TypeError);
  for (const status of [301, 302, 303, 307, 308]) assert.equal(Response.redirect("http://h/", status).status, status);
  for (const bad of [200, 300, 304, 309, 0]) assert.throws(() => Response.redirect("http://h/", bad), RangeError);
  assert.throws(() => Response.redirect("/rel"), TypeError);
  assert.throws(() => Response.redirect("bad", 200), TypeError);
});

test("clone", async () => {
  const a = new Response("abc", { status: 201, headers: { x: "1" } });
  const b = a.clone();
  assert.deepEqual([b.status, b.headers.get("x"), await b.text(), a.bodyUsed, await a.text()], [201, "1", "abc", false, "abc"]);
  assert.throws(() => a.clone(), TypeError);
  const locked = new Response("x");
  locked.body.getReader();
  assert.throws(() => locked.clone(), TypeError);
  const objects = new Response(new ReadableStream({ start(c) { c.enqueue(new Uint8Array([97])); c.close(); } }));
  const copy = objects.clone();
  const x = (await objects.body.getReader().read()).value;
  x[0] = 0;
  assert.equal(await copy.text(), "a");
  assert.equal(new Response().clone().body, null);
});

test("members are read in order", () => {
  const order = [];
  new Response("x", new Proxy({}, { get(_, key) { order.push(key); return undefined; } }));
  assert.deepEqual(order, ["cf", "headers", "status", "statusText", "webSocket"]);
  const calls = [];
  new Response({ toString() { calls.push("body"); return ""; } }, { get status() { calls.push("status"); return 200; } });
  assert.deepEqual(calls, ["body", "status"]);
});

test("subclasses and receivers", async () => {
  class Mine extends Response { hello() { return this.status; } }
  assert.equal(new Mine("x", { status: 202 }).hello(), 202);
  assert.throws(() => Object.getOwnPropertyDescriptor(Response.prototype, "status").get.call({}), TypeError);
  await assert.rejects(Response.prototype.json.call({}), TypeError);
});

test("init is converted before it is checked", () => {
  assert.throws(() => new Response("", { status: 99, headers: { "": "" } }), RangeError);
  assert.throws(() => new Response("", { status: 99, headers: { a: "\u0100" } }), TypeError);
  assert.throws(() => new Response("", { status: 99, statusText: "\u0100" }), TypeError);
  assert.throws(() => new Response("", { status: 99, statusText: "\n" }), RangeError);
  assert.throws(() => new Response("", { status: 204, headers: { "a b": "" } }), TypeError);
  const seen = [];
  new Response("", { get statusText() { seen.push("statusText"); return ""; }, get status() { seen.push("status"); return { valueOf() { seen.push("number"); return 200; } }; },
    get headers() { seen.push("headers"); return { get a() { seen.push("a"); return "1"; } }; } });
  assert.deepEqual(seen, ["headers", "a", "status", "number", "statusText"]);
});
