// AbortController and AbortSignal.

test("a controller aborts its signal once", () => {
  const c = new AbortController();
  const { signal } = c;
  assert.equal(c.signal, signal);
  assert.deepEqual([signal.aborted, signal.reason], [false, undefined]);
  let n = 0;
  signal.addEventListener("abort", (e) => { n++; assert.equal(e.isTrusted, true); assert.equal(e.target, signal); });
  c.abort();
  c.abort("later");
  assert.equal(n, 1);
  assert.equal(signal.aborted, true);
  assert.equal(signal.reason.name, "AbortError");
  assert.ok(signal.reason instanceof DOMException);
  assert.throws(() => signal.throwIfAborted(), { value: signal.reason });
});

test("reasons are kept as they are", () => {
  for (const reason of [null, 0, "", false, { a: 1 }, new Error("x")]) {
    const c = new AbortController();
    c.abort(reason);
    assert.equal(c.signal.reason, reason);
  }
  const c = new AbortController();
  c.abort(undefined);
  assert.equal(c.signal.reason.name, "AbortError");
});

test("AbortSignal.abort", () => {
  assert.equal(AbortSignal.abort().aborted, true);
  assert.equal(AbortSignal.abort().reason.name, "AbortError");
  assert.equal(AbortSignal.abort(5).reason, 5);
  assert.throws(() => AbortSignal.abort(5).throwIfAborted(), { value: 5 });
  new AbortController().signal.throwIfAborted();
});

test("onabort", () => {
  const c = new AbortController();
  const order = [];
  assert.equal(c.signal.onabort, null);
  c.signal.addEventListener("abort", () => order.push(1));
  c.signal.onabort = () => order.push("first handler");
  c.signal.addEventListener("abort", () => order.push(3));
  const fn = function () { order.push(this === c.signal); };
  c.signal.onabort = fn;
  assert.equal(c.signal.onabort, fn);
  c.abort();
  assert.deepEqual(order, [1, true, 3]);
  c.signal.onabort = 5;
  assert.equal(c.signal.onabort, null);
});

test("AbortSignal.timeout", async () => {
  const signal = AbortSignal.timeout(1);
  assert.equal(signal.aborted, false);
  await new Promise((resolve) => signal.addEventListener("abort", resolve));
  assert.equal(signal.reason.name, "TimeoutError");
  assert.equal(signal.reason.code, 23);
  for (const bad of [-1, NaN, Infinity, "x", 2 ** 53]) assert.throws(() => AbortSignal.timeout(bad), TypeError, String(bad));
  assert.throws(() => AbortSignal.timeout(), TypeError);
});

test("AbortSignal.any", () => {
  const a = new AbortController();
  const b = new AbortController();
  const any = AbortSignal.any([a.signal, b.signal]);
  const order = [];
  any.addEventListener("abort", () => order.push("any"));
  b.signal.addEventListener("abort", () => { order.push("b"); assert.equal(any.aborted, true); });
  b.abort("why");
  assert.deepEqual(order, ["b", "any"]);
  assert.equal(any.reason, "why");
  a.abort("other");
  assert.equal(any.reason, "why");
  assert.equal(AbortSignal.any([]).aborted, false);
  assert.equal(AbortSignal.any([AbortSignal.abort(1), AbortSignal.abort(2)]).reason, 1);
  assert.throws(() => AbortSignal.any([{}]), TypeError);
  assert.throws(() => AbortSignal.any(5), TypeError);
});

test("AbortSignal.any of any", () => {
  const a = new AbortController();
  const inner = AbortSignal.any([a.signal, a.signal]);
  const outer = AbortSignal.any([inner, AbortSignal.any([])]);
  let n = 0;
  outer.addEventListener("abort", () => n++);
  a.abort(7);
  assert.deepEqual([inner.reason, outer.reason, n], [7, 7, 1]);
});

test("abort in an abort listener", () => {
  const c = new AbortController();
  const seen = [];
  c.signal.addEventListener("abort", () => { seen.push(1); c.abort(); });
  c.signal.addEventListener("abort", () => seen.push(2));
  c.abort();
  assert.deepEqual(seen, [1, 2]);
});

test("receivers", () => {
  assert.throws(() => AbortController.prototype.abort.call({}), TypeError);
  assert.throws(() => AbortSignal.prototype.throwIfAborted.call(new EventTarget()), TypeError);
  assert.ok(new AbortController().signal instanceof EventTarget);
  assert.equal(Object.prototype.toString.call(new AbortController().signal), "[object AbortSignal]");
});
