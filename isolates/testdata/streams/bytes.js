// Byte streams and BYOB readers.

const tick = () => new Promise((resolve) => setTimeout(resolve, 0));
const source = (...chunks) => new ReadableStream({ type: "bytes", start(c) { for (const x of chunks) c.enqueue(new Uint8Array(x)); c.close(); } });

test("default reads of a byte stream", async () => {
  const r = source([1, 2], [3]).getReader();
  assert.deepEqual([...(await r.read()).value], [1, 2]);
  assert.deepEqual([...(await r.read()).value], [3]);
  assert.equal((await r.read()).done, true);
});

test("enqueue takes the buffer and checks it", () => {
  let c;
  new ReadableStream({ type: "bytes", start(x) { c = x; } });
  assert.ok(c instanceof ReadableByteStreamController);
  const view = new Uint8Array([1]);
  c.enqueue(view);
  assert.equal(view.buffer.detached, true);
  assert.throws(() => c.enqueue(view), TypeError);
  assert.throws(() => c.enqueue(new Uint8Array(0)), TypeError);
  for (const bad of [[], "x", new ArrayBuffer(1), null]) assert.throws(() => c.enqueue(bad), TypeError);
  assert.equal(c.desiredSize, -1);
  assert.equal(c.byobRequest, null);
});

test("BYOB reads fill the view and move its buffer", async () => {
  const r = source([1, 2, 3], [4, 5]).getReader({ mode: "byob" });
  const view = new Uint8Array(4);
  const first = await r.read(view);
  assert.equal(view.buffer.detached, true);
  assert.deepEqual([[...first.value], first.value.buffer.byteLength, first.done], [[1, 2, 3, 4], 4, false]);
  const second = await r.read(new Uint8Array(first.value.buffer, 1, 3));
  assert.deepEqual([[...second.value], second.value.byteOffset], [[5], 1]);
  const end = await r.read(new Uint8Array(2));
  assert.deepEqual([end.done, end.value.length, end.value.buffer.byteLength], [true, 0, 2]);
});

test("BYOB reads of wider elements keep the rest", async () => {
  let c;
  const s = new ReadableStream({ type: "bytes", start(x) { c = x; } });
  const r = s.getReader({ mode: "byob" });
  const read = r.read(new Uint16Array(2));
  c.enqueue(new Uint8Array([1, 0, 2]));
  assert.deepEqual([...(await read).value], [1]);
  r.releaseLock();
  const d = s.getReader();
  assert.deepEqual([...(await d.read()).value], [2]);
});

test("BYOB read with min", async () => {
  let c;
  const r = new ReadableStream({ type: "bytes", start(x) { c = x; } }).getReader({ mode: "byob" });
  const read = r.read(new Uint8Array(8), { min: 4 });
  let done = false;
  read.then(() => { done = true; });
  c.enqueue(new Uint8Array([1, 2, 3]));
  await tick();
  assert.equal(done, false);
  c.enqueue(new Uint8Array([4, 5]));
  assert.deepEqual([...(await read).value], [1, 2, 3, 4, 5]);
  await assert.rejects(r.read(new Uint8Array(1), { min: 0 }), TypeError);
  await assert.rejects(r.read(new Uint8Array(1), { min: 2 }), RangeError);
});

test("BYOB reads refuse bad views", async () => {
  const r = source([1]).getReader({ mode: "byob" });
  for (const bad of [undefined, null, [], new ArrayBuffer(1), new Uint8Array(0)]) await assert.rejects(r.read(bad), TypeError);
  const gone = new Uint8Array(1);
  gone.buffer.transfer();
  await assert.rejects(r.read(gone), TypeError);
  await assert.rejects(r.read(), TypeError);
});

test("byobRequest: respond", async () => {
  const seen = [];
  const s = new ReadableStream({
    type: "bytes",
    pull(c) {
      const q = c.byobRequest;
      seen.push(q.view.byteLength, c.byobRequest === q);
      q.view[0] = 7;
      q.respond(1);
      assert.throws(() => q.respond(1), TypeError);
      assert.equal(q.view, null);
    },
  });
  const r = s.getReader({ mode: "byob" });
  const { value } = await r.read(new Uint8Array(3));
  assert.deepEqual([...value], [7]);
  assert.deepEqual(seen, [3, true]);
});

test("byobRequest: respondWithNewView, and too much", async () => {
  let request;
  const s = new ReadableStream({ type: "bytes", pull(c) { request = c.byobRequest; } });
  const r = s.getReader({ mode: "byob" });
  const read = r.read(new Uint8Array(4));
  await tick();
  assert.throws(() => request.respond(5), RangeError);
  assert.throws(() => request.respond(0), TypeError);
  assert.throws(() => request.respond(-1), TypeError);
  assert.throws(() => request.respondWithNewView(new Uint8Array(2)), RangeError);
  const buffer = request.view.buffer.transfer();
  new Uint8Array(buffer)[0] = 9;
  request.respondWithNewView(new Uint8Array(buffer, 0, 1));
  assert.deepEqual([...(await read).value], [9]);
});

test("autoAllocateChunkSize gives default reads a request", async () => {
  const s = new ReadableStream({ type: "bytes", autoAllocateChunkSize: 16, pull(c) { c.byobRequest.view[0] = 5; c.byobRequest.respond(1); } });
  const { value } = await s.getReader().read();
  assert.deepEqual([value.length, value[0], value.buffer.byteLength], [1, 5, 16]);
  assert.throws(() => new ReadableStream({ type: "bytes", autoAllocateChunkSize: 0 }), TypeError);
});

test("closing with a BYOB read pending needs respond(0)", async () => {
  let c;
  const s = new ReadableStream({ type: "bytes", start(x) { c = x; } });
  const r = s.getReader({ mode: "byob" });
  const read = r.read(new Uint8Array(2));
  c.close();
  c.byobRequest.respond(0);
  const end = await read;
  assert.deepEqual([end.done, end.value.length], [true, 0]);
});

test("cancel with a BYOB read pending", async () => {
  const r = new ReadableStream({ type: "bytes" }).getReader({ mode: "byob" });
  const read = r.read(new Uint8Array(2));
  await r.cancel();
  assert.deepEqual(await read, { value: undefined, done: true });
});

test("error with a BYOB read pending; release rejects", async () => {
  let c;
  const error = new Error("b");
  const s = new ReadableStream({ type: "bytes", start(x) { c = x; } });
  let r = s.getReader({ mode: "byob" });
  const released = r.read(new Uint8Array(1));
  r.releaseLock();
  await assert.rejects(released, TypeError);
  r = s.getReader({ mode: "byob" });
  const read = r.read(new Uint8Array(1));
  c.error(error);
  await assert.rejects(read, { value: error });
});

test("tee of a byte stream gives byte streams with bytes of their own", async () => {
  const [a, b] = source([1, 2, 3]).tee();
  const x = await a.getReader({ mode: "byob" }).read(new Uint8Array(3));
  const y = await b.getReader().read();
  x.value[0] = 99;
  assert.deepEqual([...y.value], [1, 2, 3]);
});
