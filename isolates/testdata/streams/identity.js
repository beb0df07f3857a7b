// IdentityTransformStream and FixedLengthStream of Cloudflare.

const bytes = (...list) => new Uint8Array(list);
const sides = (s, mode) => [s.writable.getWriter(), s.readable.getReader(mode)];

test("they are TransformStreams of bytes", () => {
  const s = new IdentityTransformStream();
  assert.ok(s instanceof TransformStream);
  assert.ok(new FixedLengthStream(3) instanceof IdentityTransformStream);
  assert.equal(Object.prototype.toString.call(s), "[object IdentityTransformStream]");
  assert.ok(s.readable instanceof ReadableStream && s.writable instanceof WritableStream);
  assert.equal(s.readable, s.readable);
  assert.equal(s.writable.getWriter().desiredSize, 1);
  assert.equal(new IdentityTransformStream({ highWaterMark: 10 }).writable.getWriter().desiredSize, 10);
  assert.throws(() => new IdentityTransformStream(3), TypeError);
  assert.throws(() => new IdentityTransformStream({ highWaterMark: -1 }), RangeError);
  assert.throws(() => IdentityTransformStream(), TypeError);
  const plain = new TransformStream(); // the state of the streams before has gone to nobody else
  assert.ok(!(plain instanceof IdentityTransformStream));
  assert.equal(plain.writable.getWriter().desiredSize, 1);
});

test("a write waits until its bytes are read", async () => {
  const [w, r] = sides(new IdentityTransformStream());
  let done = false;
  const written = w.write(bytes(1, 2)).then(() => { done = true; });
  await new Promise((resolve) => setTimeout(resolve, 2));
  assert.equal(done, false);
  const { value } = await r.read();
  assert.ok(value instanceof Uint8Array);
  assert.deepEqual([...value], [1, 2]);
  await written;
  const next = r.read();
  await w.write(bytes(3).buffer);
  assert.deepEqual([...(await next).value], [3]);
  const words = r.read();
  await w.write(new Uint16Array([1, 2]));
  assert.deepEqual([...(await words).value], [1, 0, 2, 0]);
  await w.write(bytes());
  const end = r.read();
  await w.close();
  assert.deepEqual(await end, { value: undefined, done: true });
});

test("a chunk stays the writer's", async () => {
  const [w, r] = sides(new IdentityTransformStream());
  const chunk = bytes(1);
  w.write(chunk);
  await new Promise((resolve) => setTimeout(resolve, 1));
  chunk[0] = 2;
  assert.deepEqual([...(await r.read()).value], [1]);
  assert.equal(chunk.byteLength, 1);
});

test("a reader may bring its own buffer", async () => {
  const [w, r] = sides(new IdentityTransformStream(), { mode: "byob" });
  w.write(bytes(1, 2, 3));
  assert.deepEqual([...(await r.read(new Uint8Array(2))).value], [1, 2]);
  assert.deepEqual([...(await r.read(new Uint8Array(2))).value], [3]);
  w.close();
  const { done, value } = await r.read(new Uint8Array(2));
  assert.ok(done && value.byteLength === 0);
});

test("chunks that are not bytes", async () => {
  for (const chunk of ["text", 3, {}, null, undefined]) {
    const [w, r] = sides(new IdentityTransformStream());
    w.closed.catch(() => {});
    await assert.rejects(w.write(chunk), TypeError);
    await assert.rejects(r.read(), TypeError);
  }
});

test("abort and cancel reach the other side", async () => {
  const reason = new Error("boo");
  {
    const [w, r] = sides(new IdentityTransformStream());
    w.closed.catch(() => {});
    await w.abort(reason);
    await assert.rejects(r.read(), { value: reason });
  }
  {
    const s = new IdentityTransformStream();
    const w = s.writable.getWriter();
    w.closed.catch(() => {});
    const waiting = w.write(bytes(1));
    await s.readable.cancel(reason);
    await assert.rejects(waiting, { value: reason });
    await assert.rejects(w.write(bytes(1)), { value: reason });
  }
});

test("pipes", async () => {
  const s = new IdentityTransformStream();
  const text = new Response("hello").body.pipeThrough(s);
  assert.equal(await new Response(text).text(), "hello");
});

test("a FixedLengthStream takes as many bytes as it was made for", async () => {
  const [w, r] = sides(new FixedLengthStream(3));
  const first = r.read();
  await w.write(bytes(1, 2));
  assert.deepEqual([...(await first).value], [1, 2]);
  const second = r.read();
  await w.write(bytes(3));
  await second;
  const end = r.read();
  await w.close();
  assert.ok((await end).done);

  for (const n of [1, 1n, "1", 1.5]) new FixedLengthStream(n);
  for (const n of [undefined, NaN, Infinity, -1, -1n, 2 ** 53, 2n ** 64n, {}, Symbol()]) assert.throws(() => new FixedLengthStream(n), TypeError);
  assert.throws(() => new FixedLengthStream(), TypeError);
  const [none, empty] = sides(new FixedLengthStream(0));
  none.close();
  assert.ok((await empty.read()).done);
});

test("a FixedLengthStream with too many or too few bytes", async () => {
  {
    const [w, r] = sides(new FixedLengthStream(2));
    w.closed.catch(() => {});
    const error = await w.write(bytes(1, 2, 3)).catch((e) => e);
    assert.equal(String(error), "TypeError: Attempt to write too many bytes through a FixedLengthStream.");
    await assert.rejects(r.read(), { value: error });
  }
  {
    const [w, r] = sides(new FixedLengthStream(2));
    w.closed.catch(() => {});
    const read = r.read();
    await w.write(bytes(1));
    await read;
    const error = await w.close().catch((e) => e);
    assert.equal(String(error), "TypeError: FixedLengthStream did not see all expected bytes before close().");
    await assert.rejects(r.read(), { value: error });
  }
});

test("subclasses, and parents that a handler has replaced", async () => {
  class Mine extends FixedLengthStream {
    constructor() { super(1); }
  }
  const s = new Mine();
  const r = s.readable.getReader();
  s.writable.getWriter().write(bytes(7));
  assert.deepEqual([...(await r.read()).value], [7]);
  const seen = [];
  const parent = Object.getPrototypeOf(IdentityTransformStream);
  Object.setPrototypeOf(IdentityTransformStream, function (...args) { seen.push(args.length); });
  const fake = new IdentityTransformStream();
  Object.setPrototypeOf(IdentityTransformStream, parent);
  assert.deepEqual(seen, [0]);
  assert.throws(() => fake.readable, TypeError);
  new TransformStream().writable.getWriter(); // not the state that was meant for the other
});
