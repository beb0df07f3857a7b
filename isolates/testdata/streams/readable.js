// ReadableStream with a default controller.

const drain = async (stream) => {
  const out = [];
  for await (const chunk of stream) out.push(chunk);
  return out;
};
const tick = () => new Promise((resolve) => setTimeout(resolve, 0));

test("construction", () => {
  new ReadableStream();
  new ReadableStream({});
  new ReadableStream(undefined, undefined);
  for (const bad of [null, 5, "x"]) assert.throws(() => new ReadableStream(bad), TypeError);
  assert.throws(() => new ReadableStream({ type: "text" }), TypeError);
  assert.throws(() => new ReadableStream({ start: 5 }), TypeError);
  assert.throws(() => new ReadableStream({ pull: {} }), TypeError);
  for (const mark of [-1, NaN]) assert.throws(() => new ReadableStream({}, { highWaterMark: mark }), RangeError);
  assert.throws(() => new ReadableStream({ type: "bytes" }, { size() {} }), RangeError);
  assert.throws(() => new ReadableStream({ start() { throw new RangeError("mine"); } }), RangeError);
  const order = [];
  const spy = new Proxy({}, { get(_, key) { order.push(key); return undefined; } });
  new ReadableStream(spy, spy);
  assert.deepEqual(order, ["highWaterMark", "size", "autoAllocateChunkSize", "cancel", "pull", "start", "type"]);
});

test("start, pull and cancel get this and the controller", async () => {
  const calls = [];
  const source = {
    start(c) { calls.push(["start", this === source, c instanceof ReadableStreamDefaultController]); },
    pull(c) { calls.push(["pull", this === source, c.desiredSize]); },
    cancel(reason) { calls.push(["cancel", this === source, reason, arguments.length]); },
  };
  const s = new ReadableStream(source);
  await tick();
  await s.cancel("why");
  assert.deepEqual(calls, [["start", true, true], ["pull", true, 1], ["cancel", true, "why", 1]]);
});

test("reading", async () => {
  const s = new ReadableStream({ start(c) { c.enqueue("a"); c.enqueue(undefined); c.close(); } });
  const r = s.getReader();
  assert.equal(s.locked, true);
  const first = await r.read();
  assert.deepEqual(Object.keys(first), ["value", "done"]);
  assert.deepEqual([first.value, first.done], ["a", false]);
  assert.deepEqual(await r.read(), { value: undefined, done: false });
  assert.deepEqual(await r.read(), { value: undefined, done: true });
  assert.equal(await r.closed, undefined);
  assert.throws(() => s.getReader(), TypeError);
  r.releaseLock();
  assert.equal(s.locked, false);
  await assert.rejects(r.read(), TypeError);
  await assert.rejects(r.closed, TypeError);
  r.releaseLock();
});

test("reads wait for chunks, in order", async () => {
  let controller;
  const r = new ReadableStream({ start(c) { controller = c; } }).getReader();
  const reads = [r.read(), r.read(), r.read()];
  controller.enqueue(1);
  controller.enqueue(2);
  controller.close();
  assert.deepEqual((await Promise.all(reads)).map((x) => x.value ?? x.done), [1, 2, true]);
});

test("releasing with reads pending rejects them", async () => {
  const s = new ReadableStream();
  const r = s.getReader();
  const pending = r.read();
  r.releaseLock();
  await assert.rejects(pending, TypeError);
  assert.equal(s.locked, false);
});

test("errors", async () => {
  const error = new Error("e");
  let controller;
  const s = new ReadableStream({ start(c) { controller = c; c.enqueue(1); } });
  const r = s.getReader();
  controller.error(error);
  controller.error(new Error("second"));
  await assert.rejects(r.read(), { value: error });
  await assert.rejects(r.closed, { value: error });
  await assert.rejects(r.cancel(), { value: error });
  assert.equal(controller.desiredSize, null);
  assert.throws(() => controller.enqueue(2), TypeError);
  assert.throws(() => controller.close(), TypeError);
});

test("pull failing errors the stream", async () => {
  const error = new Error("p");
  await assert.rejects(new ReadableStream({ pull() { throw error; } }).getReader().read(), { value: error });
  await assert.rejects(new ReadableStream({ async pull() { throw error; } }).getReader().read(), { value: error });
  await assert.rejects(new ReadableStream({ async start() { throw error; } }).getReader().read(), { value: error });
});

test("close: queued chunks still come", async () => {
  let controller;
  const s = new ReadableStream({ start(c) { controller = c; } });
  controller.enqueue(1);
  controller.close();
  assert.throws(() => controller.close(), TypeError);
  assert.throws(() => controller.enqueue(2), TypeError);
  assert.deepEqual(await drain(s), [1]);
  assert.equal(controller.desiredSize, 0);
});

test("backpressure: pull only while there is room", async () => {
  let pulls = 0;
  const s = new ReadableStream({ pull(c) { pulls++; c.enqueue(pulls); } }, { highWaterMark: 3 });
  await tick();
  assert.equal(pulls, 3);
  const r = s.getReader();
  await r.read();
  await tick();
  assert.equal(pulls, 4);
  const zero = new ReadableStream({ pull(c) { pulls++; c.enqueue("z"); } }, { highWaterMark: 0 });
  await tick();
  assert.equal(pulls, 4);
  assert.equal((await zero.getReader().read()).value, "z");
});

test("pull is not called again while its promise is pending", async () => {
  let pulls = 0;
  let release;
  const s = new ReadableStream({ pull() { pulls++; return new Promise((resolve) => { release = resolve; }); } });
  const r = s.getReader();
  r.read().catch(() => {});
  await tick();
  r.read().catch(() => {});
  await tick();
  assert.equal(pulls, 1);
  release();
  await tick();
  assert.equal(pulls, 2);
  r.cancel();
});

test("size: chunks count as told", async () => {
  let controller;
  const s = new ReadableStream({ start(c) { controller = c; } }, { highWaterMark: 10, size: (chunk) => chunk.length });
  controller.enqueue("abcd");
  assert.equal(controller.desiredSize, 6);
  await s.getReader().read();
  assert.equal(controller.desiredSize, 10);
  for (const size of [-1, NaN, Infinity]) {
    let c;
    new ReadableStream({ start(x) { c = x; } }, { size: () => size });
    assert.throws(() => c.enqueue(1), RangeError, String(size));
  }
  const mine = new Error("mine");
  let c;
  const bad = new ReadableStream({ start(x) { c = x; } }, { size() { throw mine; } });
  assert.throws(() => c.enqueue(1), { value: mine });
  await assert.rejects(bad.getReader().read(), { value: mine });
});

test("cancel", async () => {
  let reason;
  const s = new ReadableStream({ start(c) { c.enqueue(1); }, cancel(r) { reason = r; return "ignored"; } });
  const r = s.getReader();
  await assert.rejects(s.cancel(), TypeError);
  assert.equal(await r.cancel("x"), undefined);
  assert.equal(reason, "x");
  assert.deepEqual(await r.read(), { value: undefined, done: true });
  const fails = new ReadableStream({ cancel() { throw reason; } });
  await assert.rejects(fails.cancel(), { value: "x" });
  assert.equal(await new ReadableStream({ start(c) { c.close(); } }).cancel(), undefined);
});

test("async iteration", async () => {
  const make = () => new ReadableStream({ start(c) { c.enqueue(1); c.enqueue(2); c.enqueue(3); c.close(); } });
  assert.deepEqual(await drain(make()), [1, 2, 3]);
  const s = make();
  for await (const x of s) { assert.equal(s.locked, true); if (x === 2) break; }
  assert.equal(s.locked, false);
  assert.deepEqual(await s.getReader().read(), { value: undefined, done: true });
  const kept = make();
  for await (const x of kept.values({ preventCancel: true })) { if (x === 1) break; }
  assert.deepEqual(await drain(kept), [2, 3]);
  assert.equal(ReadableStream.prototype[Symbol.asyncIterator], ReadableStream.prototype.values);
  const it = make()[Symbol.asyncIterator]();
  const [a, b, c, d, e] = await Promise.all([it.next(), it.next(), it.next(), it.next(), it.next()]);
  assert.deepEqual([a.value, b.value, c.value, d.done, e.done], [1, 2, 3, true, true]);
  const early = make().values();
  assert.deepEqual(await early.return("v"), { value: "v", done: true });
  assert.deepEqual(await early.next(), { value: undefined, done: true });
  await assert.rejects(Object.getPrototypeOf(it).next.call({}), TypeError);
});

test("ReadableStream.from", async () => {
  assert.deepEqual(await drain(ReadableStream.from([1, Promise.resolve(2)])), [1, 2]);
  assert.deepEqual(await drain(ReadableStream.from("ab")), ["a", "b"]);
  assert.deepEqual(await drain(ReadableStream.from((async function* () { yield 1; yield 2; })())), [1, 2]);
  assert.deepEqual(await drain(ReadableStream.from(new ReadableStream({ start(c) { c.enqueue("x"); c.close(); } }))), ["x"]);
  for (const bad of [null, 5, {}, { [Symbol.iterator]: 5 }]) assert.throws(() => ReadableStream.from(bad), TypeError);
  let returned;
  const s = ReadableStream.from({ [Symbol.asyncIterator]: () => ({ next: async () => ({ value: 1, done: false }), async return(v) { returned = v; return {}; } }) });
  const r = s.getReader();
  await r.read();
  await r.cancel("stop");
  assert.equal(returned, "stop");
  const error = new Error("gen");
  await assert.rejects(drain(ReadableStream.from((function* () { yield 1; throw error; })())), { value: error });
});

test("tee", async () => {
  const s = new ReadableStream({ start(c) { c.enqueue({ v: 1 }); c.enqueue(2); c.close(); } });
  const [a, b] = s.tee();
  assert.equal(s.locked, true);
  const [x, y] = [await drain(a), await drain(b)];
  assert.equal(x[0], y[0]);
  assert.deepEqual([x.length, y.length], [2, 2]);
  let reason;
  const [c, d] = new ReadableStream({ cancel(r) { reason = r; } }).tee();
  const first = c.cancel("1");
  assert.equal(reason, undefined);
  await d.cancel("2");
  await first;
  assert.deepEqual(reason, ["1", "2"]);
  const error = new Error("t");
  let controller;
  const [e, f] = new ReadableStream({ start(ctl) { controller = ctl; } }).tee();
  controller.error(error);
  await assert.rejects(e.getReader().read(), { value: error });
  await assert.rejects(f.getReader().read(), { value: error });
});

test("readers from constructors", async () => {
  const s = new ReadableStream({ start(c) { c.enqueue(1); c.close(); } });
  const r = new ReadableStreamDefaultReader(s);
  assert.equal((await r.read()).value, 1);
  assert.throws(() => new ReadableStreamDefaultReader(s), TypeError);
  assert.throws(() => new ReadableStreamDefaultReader({}), TypeError);
  assert.throws(() => new ReadableStreamBYOBReader(new ReadableStream()), TypeError);
  assert.throws(() => new ReadableStream().getReader({ mode: "x" }), TypeError);
  assert.throws(() => new ReadableStream().getReader({ mode: "byob" }), TypeError);
  assert.throws(() => ReadableStream.prototype.getReader.call({}), TypeError);
  await assert.rejects(ReadableStream.prototype.cancel.call({}), TypeError);
  await assert.rejects(ReadableStreamDefaultReader.prototype.read.call({}), TypeError);
});

test("strategies", () => {
  const c = new CountQueuingStrategy({ highWaterMark: 5 });
  assert.deepEqual([c.highWaterMark, c.size(), c.size.length, c.size.name], [5, 1, 0, "size"]);
  const b = new ByteLengthQueuingStrategy({ highWaterMark: "7" });
  assert.deepEqual([b.highWaterMark, b.size({ byteLength: 3 }), b.size.length], [7, 3, 1]);
  assert.equal(b.size, new ByteLengthQueuingStrategy({ highWaterMark: 1 }).size);
  for (const bad of [undefined, null, {}, 5]) assert.throws(() => new CountQueuingStrategy(bad), TypeError);
  assert.ok(Number.isNaN(new CountQueuingStrategy({ highWaterMark: "x" }).highWaterMark));
});
