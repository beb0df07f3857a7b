// WritableStream, TransformStream, pipeTo and pipeThrough.

const tick = () => new Promise((resolve) => setTimeout(resolve, 0));
const drain = async (stream) => {
  const out = [];
  for await (const chunk of stream) out.push(chunk);
  return out;
};

test("writes reach the sink in order, one at a time", async () => {
  const log = [];
  let open = 0;
  const w = new WritableStream({
    start(c) { log.push(c instanceof WritableStreamDefaultController); },
    async write(chunk, c) { log.push(chunk, ++open); await tick(); open--; assert.ok(c.signal instanceof AbortSignal); },
    close() { log.push("close", arguments.length); },
  }).getWriter();
  w.write("a");
  w.write("b");
  await w.close();
  assert.deepEqual(log, [true, "a", 1, "b", 1, "close", 0]);
  assert.equal(await w.closed, undefined);
  await assert.rejects(w.write("c"), TypeError);
  await assert.rejects(w.close(), TypeError);
});

test("construction", () => {
  new WritableStream();
  for (const bad of [null, 5]) assert.throws(() => new WritableStream(bad), TypeError);
  assert.throws(() => new WritableStream({ type: "bytes" }), RangeError);
  assert.throws(() => new WritableStream({ write: 5 }), TypeError);
  assert.throws(() => new WritableStream({ start() { throw new RangeError("x"); } }), RangeError);
  assert.throws(() => new WritableStream({}, { highWaterMark: -1 }), RangeError);
});

test("desiredSize and ready", async () => {
  let release;
  const s = new WritableStream({ write: () => new Promise((resolve) => { release = resolve; }) }, { highWaterMark: 2 });
  const w = s.getWriter();
  assert.equal(s.locked, true);
  await w.ready;
  assert.equal(w.desiredSize, 2);
  w.write(1);
  w.write(2);
  assert.equal(w.desiredSize, 0);
  let ready = false;
  w.ready.then(() => { ready = true; });
  await tick();
  assert.equal(ready, false);
  release();
  await tick();
  assert.deepEqual([ready, w.desiredSize], [true, 1]);
});

test("sink failures", async () => {
  const error = new Error("w");
  const w = new WritableStream({ write() { throw error; } }).getWriter();
  await assert.rejects(w.write(1), { value: error });
  await assert.rejects(w.closed, { value: error });
  await assert.rejects(w.write(2), { value: error });
  assert.equal(w.desiredSize, null);
  const c = new WritableStream({ close() { throw error; } }).getWriter();
  await assert.rejects(c.close(), { value: error });
  const viaController = new WritableStream({ start(ctl) { ctl.error(error); } }).getWriter();
  await assert.rejects(viaController.ready, { value: error });
  await assert.rejects(viaController.closed, { value: error });
});

test("abort", async () => {
  const log = [];
  let signal;
  const s = new WritableStream({ start(c) { signal = c.signal; }, abort(r) { log.push(r); }, close() { log.push("close"); } });
  await s.abort("why");
  assert.deepEqual([log, signal.aborted, signal.reason], [["why"], true, "why"]);
  await assert.rejects(s.getWriter().closed, { value: "why" });
  const w = new WritableStream({ write: () => new Promise(() => {}) }).getWriter();
  const write = w.write(1);
  await tick();
  w.abort("x");
  await assert.rejects(w.ready, { value: "x" });
  write.catch(() => {});
});

test("locks", async () => {
  const s = new WritableStream();
  const w = s.getWriter();
  assert.throws(() => s.getWriter(), TypeError);
  assert.throws(() => new WritableStreamDefaultWriter(s), TypeError);
  await assert.rejects(s.abort(), TypeError);
  await assert.rejects(s.close(), TypeError);
  w.releaseLock();
  assert.equal(s.locked, false);
  await assert.rejects(w.write(1), TypeError);
  await assert.rejects(w.closed, TypeError);
  await assert.rejects(w.ready, TypeError);
  assert.throws(() => w.desiredSize, TypeError);
  await s.close();
});

test("transform", async () => {
  const t = new TransformStream({ start(c) { c.enqueue("s"); }, transform(x, c) { c.enqueue(x); c.enqueue(x * 2); }, flush(c) { c.enqueue("f"); } });
  assert.deepEqual(await drain(ReadableStream.from([1, 2]).pipeThrough(t)), ["s", 1, 2, 2, 4, "f"]);
  assert.deepEqual(await drain(ReadableStream.from(["x"]).pipeThrough(new TransformStream())), ["x"]);
  for (const bad of [null, 5]) assert.throws(() => new TransformStream(bad), TypeError);
  assert.throws(() => new TransformStream({ readableType: "bytes" }), RangeError);
  assert.throws(() => new TransformStream({ writableType: "x" }), RangeError);
  assert.throws(() => new TransformStream({ start() { throw new RangeError("x"); } }), RangeError);
});

test("transform failures reach both sides", async () => {
  const error = new Error("t");
  const t = new TransformStream({ transform() { throw error; } });
  const w = t.writable.getWriter();
  const r = t.readable.getReader();
  const read = r.read();
  await assert.rejects(w.write(1), { value: error });
  await assert.rejects(read, { value: error });
  await assert.rejects(w.closed, { value: error });
});

test("terminate and cancel", async () => {
  const t = new TransformStream({ transform(x, c) { c.enqueue(x); c.terminate(); } });
  const w = t.writable.getWriter();
  w.write(1).catch(() => {});
  assert.deepEqual(await drain(t.readable), [1]);
  await assert.rejects(w.write(2), TypeError);
  let canceled;
  const c = new TransformStream({ cancel(r) { canceled = r; } });
  await c.readable.cancel("bye");
  assert.equal(canceled, "bye");
  await assert.rejects(c.writable.getWriter().closed, { value: "bye" });
});

test("backpressure through a transform", async () => {
  const t = new TransformStream({}, { highWaterMark: 1 }, { highWaterMark: 0 });
  const w = t.writable.getWriter();
  let done = false;
  w.write(1).then(() => { done = true; });
  await tick();
  assert.equal(done, false);
  assert.equal((await t.readable.getReader().read()).value, 1);
  await tick();
  assert.equal(done, true);
});

test("pipeTo closes, aborts and cancels across", async () => {
  const out = [];
  await ReadableStream.from([1, 2]).pipeTo(new WritableStream({ write(x) { out.push(x); }, close() { out.push("c"); } }));
  assert.deepEqual(out, [1, 2, "c"]);
  const error = new Error("src");
  let aborted;
  const failing = new ReadableStream({ start(c) { c.error(error); } });
  await assert.rejects(failing.pipeTo(new WritableStream({ abort(r) { aborted = r; } })), { value: error });
  assert.equal(aborted, error);
  let canceled;
  const endless = new ReadableStream({ pull(c) { c.enqueue(1); }, cancel(r) { canceled = r; } });
  await assert.rejects(endless.pipeTo(new WritableStream({ write() { throw error; } })), { value: error });
  assert.equal(canceled, error);
});

test("pipeTo options", async () => {
  const sink = new WritableStream();
  await ReadableStream.from([1]).pipeTo(sink, { preventClose: true });
  assert.equal(sink.locked, false);
  const w = sink.getWriter();
  await w.write("still open");
  w.releaseLock();
  const error = new Error("x");
  await assert.rejects(new ReadableStream({ start(c) { c.error(error); } }).pipeTo(sink, { preventAbort: true }), { value: error });
  await sink.close();
  let canceled = false;
  const source = new ReadableStream({ pull(c) { c.enqueue(1); }, cancel() { canceled = true; } });
  await assert.rejects(source.pipeTo(new WritableStream({ write() { throw error; } }), { preventCancel: true }), { value: error });
  assert.equal(canceled, false);
  assert.equal(source.locked, false);
  await assert.rejects(source.pipeTo(sink, { signal: {} }), TypeError);
});

test("pipeTo and signals", async () => {
  const c = new AbortController();
  let aborted;
  let canceled;
  const source = new ReadableStream({ async pull(ctl) { await tick(); ctl.enqueue(1); }, cancel(r) { canceled = r; } });
  const pipe = source.pipeTo(new WritableStream({ abort(r) { aborted = r; } }), { signal: c.signal });
  await tick();
  c.abort("stop");
  await assert.rejects(pipe, { value: "stop" });
  assert.deepEqual([aborted, canceled], ["stop", "stop"]);
  await assert.rejects(new ReadableStream().pipeTo(new WritableStream(), { signal: AbortSignal.abort(5) }), { value: 5 });
});

test("pipes check what they are given", async () => {
  const s = new ReadableStream();
  await assert.rejects(s.pipeTo(), TypeError);
  await assert.rejects(s.pipeTo({}), TypeError);
  assert.throws(() => s.pipeThrough({}), TypeError);
  assert.throws(() => s.pipeThrough({ readable: s, writable: {} }), TypeError);
  const locked = new WritableStream();
  locked.getWriter();
  await assert.rejects(s.pipeTo(locked), TypeError);
  s.getReader();
  await assert.rejects(s.pipeTo(new WritableStream()), TypeError);
  await assert.rejects(ReadableStream.prototype.pipeTo.call({}, new WritableStream()), TypeError);
});
