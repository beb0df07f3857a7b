// structuredClone and postMessage of streams: they are transferred, never cloned.

async function collect(stream) {
  const out = [];
  for await (const chunk of stream) out.push(chunk);
  return out;
}

const send = (value) => structuredClone(value, { transfer: [value] });
const from = (...chunks) => ReadableStream.from(chunks);

test("a readable stream", async () => {
  const o = { a: new Uint8Array([1, 2]) };
  const original = new ReadableStream({ start(c) { c.enqueue("a"); c.enqueue(o); c.close(); } });
  const copy = send(original);
  assert.ok(copy instanceof ReadableStream && copy !== original);
  assert.deepEqual([original.locked, copy.locked], [true, false]);
  const [first, second] = await collect(copy);
  assert.equal(first, "a");
  assert.ok(second !== o && second.a !== o.a);
  assert.deepEqual([...second.a], [1, 2]);
});

test("a stream that was transferred twice, one within an object, and one of bytes", async () => {
  assert.deepEqual(await collect(send(send(from(1, 2, 3)))), [1, 2, 3]);
  const stream = from("x");
  const copy = structuredClone({ stream, again: stream }, { transfer: [stream] });
  assert.equal(copy.stream, copy.again);
  assert.deepEqual(await collect(copy.stream), ["x"]);
  const bytes = send(new Response("text").body);
  assert.throws(() => bytes.getReader({ mode: "byob" }), TypeError);
  assert.equal(await new Response(bytes).text(), "text");
});

test("errors and cancellation cross over", async () => {
  const error = new RangeError("why");
  const failing = send(new ReadableStream({ pull(c) { c.error(error); } }, { highWaterMark: 0 }));
  const caught = await failing.getReader().read().catch((e) => e);
  assert.ok(caught instanceof RangeError && caught !== error);
  assert.equal(caught.message, "why");

  let canceled;
  const told = new Promise((resolve) => { canceled = resolve; });
  await send(new ReadableStream({ cancel: canceled })).cancel({ reason: 1 });
  assert.equal((await told).reason, 1);
});

test("one chunk is pulled before it is wanted: a transfer adds a queue of one", async () => {
  let pulls = 0;
  const copy = send(new ReadableStream({ pull(c) { c.enqueue(pulls++); } }, { highWaterMark: 0 }));
  await new Promise((resolve) => setTimeout(resolve, 5));
  assert.equal(pulls, 1);
  const reader = copy.getReader();
  assert.equal((await reader.read()).value, 0);
  await reader.cancel();
});

test("a chunk that cannot be cloned is a DataCloneError at both ends", async () => {
  let reason;
  const told = new Promise((resolve) => { reason = resolve; });
  const copy = send(new ReadableStream({ start(c) { c.enqueue(() => {}); }, cancel: reason }));
  await assert.rejects(copy.getReader().read(), "DataCloneError");
  assert.equal((await told).name, "DataCloneError");
});

test("a writable stream", async () => {
  const seen = [];
  const original = new WritableStream({ write(chunk) { seen.push(chunk); }, close() { seen.push("closed"); }, abort(r) { seen.push(["aborted", r]); } });
  const copy = send(original);
  assert.ok(copy instanceof WritableStream && original.locked && !copy.locked);
  const writer = copy.getWriter();
  const o = { x: 1 };
  await writer.write(o);
  await writer.write("b");
  await writer.close();
  while (seen.length < 3) await new Promise((resolve) => setTimeout(resolve));
  assert.deepEqual(seen, [{ x: 1 }, "b", "closed"]);
  assert.notEqual(seen[0], o);

  let aborted;
  const told = new Promise((resolve) => { aborted = resolve; });
  await send(new WritableStream({ abort: aborted })).abort("why");
  assert.equal(await told, "why");

  const broken = send(new WritableStream({ write() { throw new TypeError("full"); } })).getWriter();
  broken.write("x").catch(() => {});
  await assert.rejects(broken.closed, TypeError);
});

test("a transform stream", async () => {
  const original = new TransformStream({ transform(chunk, c) { c.enqueue(chunk * 2); } });
  const copy = send(original);
  assert.ok(copy instanceof TransformStream);
  assert.deepEqual([original.readable.locked, original.writable.locked, copy.readable.locked, copy.writable.locked], [true, true, false, false]);
  assert.deepEqual(await collect(from(1, 2, 3).pipeThrough(copy)), [2, 4, 6]);
});

test("what a subclass adds is not transferred", () => {
  class Mine extends ReadableStream {}
  assert.equal(Object.getPrototypeOf(send(new Mine())), ReadableStream.prototype);
});

test("refused", () => {
  const locked = new ReadableStream();
  locked.getReader();
  const writing = new WritableStream();
  writing.getWriter();
  const half = new TransformStream();
  half.writable.getWriter();
  const moved = new ReadableStream();
  send(moved);
  for (const value of [locked, writing, half, moved]) assert.throws(() => send(value), "DataCloneError");
  for (const value of [new ReadableStream(), new WritableStream(), new TransformStream()]) {
    assert.throws(() => structuredClone(value), "DataCloneError");
    assert.throws(() => structuredClone(value, { transfer: [value, value] }), "DataCloneError");
    assert.throws(() => structuredClone([value, () => {}], { transfer: [value] }), "DataCloneError");
    assert.equal((value.readable ?? value).locked, false, "a clone that fails moves nothing");
  }
  const late = new ReadableStream();
  assert.throws(() => structuredClone({ get x() { late.getReader(); } }, { transfer: [late] }), "DataCloneError");
});

test("by a port", async () => {
  const { port1, port2 } = new MessageChannel();
  const got = new Promise((resolve) => { port2.onmessage = resolve; });
  const stream = from("a", "b");
  const { port1: extra } = new MessageChannel();
  port1.postMessage({ stream }, [stream, extra]);
  const { data, ports } = await got;
  assert.deepEqual([ports.length, ports[0] instanceof MessagePort], [1, true]);
  assert.deepEqual(await collect(data.stream), ["a", "b"]);
  port1.close();
});
