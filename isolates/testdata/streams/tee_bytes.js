// tee() of byte streams: what the readers of the branches ask for reaches the source as they asked for it.

const tick = () => new Promise((resolve) => setTimeout(resolve, 0));

function make(options = {}) {
  const made = { pulls: 0, requests: [] };
  made.stream = new ReadableStream({
    type: "bytes",
    start(c) { made.controller = c; },
    pull(c) { made.pulls++; made.requests.push(c.byobRequest); },
    cancel(reason) { made.canceled = reason; },
    ...options,
  });
  return made;
}

test("a BYOB read of a branch reads into its own buffer, and the other branch has a copy", async () => {
  for (const which of [0, 1]) {
    const made = make({ pull(c) { c.byobRequest.view.set([1, 2, 3]); c.byobRequest.respond(3); } });
    const branches = made.stream.tee();
    const [mine, other] = [branches[which].getReader({ mode: "byob" }), branches[1 - which].getReader({ mode: "byob" })];
    const buffer = new ArrayBuffer(10);
    const view = new Uint8Array(buffer, 2, 5);
    const first = await mine.read(view);
    assert.equal(view.byteLength, 0, "the view was taken");
    assert.deepEqual([[...first.value], first.value.byteOffset, first.value.buffer.byteLength], [[1, 2, 3], 2, 10]);
    first.value[0] = 9;
    const second = await other.read(new Uint8Array(8));
    assert.deepEqual([...second.value], [1, 2, 3], "a copy");
  }
});

test("the source sees a request of the size of the branch's view, and none for a default read", async () => {
  const made = make();
  const [a, b] = made.stream.tee();
  const byob = a.getReader({ mode: "byob" });
  const read = byob.read(new Uint8Array(16));
  await tick();
  assert.equal(made.requests[0].view.byteLength, 16);
  made.requests[0].view[0] = 7;
  made.requests[0].respond(1);
  assert.deepEqual([...(await read).value], [7]);
  const reader = b.getReader();
  assert.deepEqual([...(await reader.read()).value], [7]);
  const next = reader.read();
  await tick();
  assert.deepEqual([made.pulls, made.requests[1]], [2, null]);
  made.controller.enqueue(new Uint8Array([8]));
  assert.deepEqual([...(await next).value], [8]);
  assert.deepEqual([...(await byob.read(new Uint8Array(4))).value], [8]);
});

test("both branches read at once: one pull at a time", async () => {
  const made = make();
  const [a, b] = made.stream.tee().map((branch) => branch.getReader({ mode: "byob" }));
  const reads = [a.read(new Uint8Array(new ArrayBuffer(10), 1, 4)), b.read(new Uint8Array(7))];
  await tick();
  assert.deepEqual([made.pulls, made.requests[0].view.byteLength], [1, 4]);
  made.controller.byobRequest.view.set([1, 2]);
  made.controller.byobRequest.respond(2);
  const [x, y] = await Promise.all(reads);
  assert.deepEqual([[...x.value], [...y.value]], [[1, 2], [1, 2]]);
  assert.deepEqual([x.value.buffer.byteLength, y.value.buffer.byteLength], [10, 7]);
  await tick();
  assert.equal(made.pulls, 1);
});

test("the end reaches BYOB reads of both branches with their buffers", async () => {
  const made = make();
  const [a, b] = made.stream.tee().map((branch) => branch.getReader({ mode: "byob" }));
  const reads = [a.read(new Uint8Array(2)), b.read(new Uint8Array(3))];
  await tick();
  made.controller.close();
  made.controller.byobRequest.respond(0);
  const [x, y] = await Promise.all(reads);
  assert.deepEqual([x.done, x.value.byteLength, x.value.buffer.byteLength], [true, 0, 2]);
  assert.deepEqual([y.done, y.value.byteLength, y.value.buffer.byteLength], [true, 0, 3]);
  await Promise.all([a.closed, b.closed]);
});

test("respond and close, and enqueue and close, while both branches read", async () => {
  for (const finish of [(c) => { c.byobRequest.view[0] = 5; c.byobRequest.respond(1); c.close(); }, (c) => { c.enqueue(new Uint8Array([5])); c.close(); }]) {
    const made = make();
    const [a, b] = made.stream.tee().map((branch) => branch.getReader({ mode: "byob" }));
    const reads = [a.read(new Uint8Array(2)), b.read(new Uint8Array(2))];
    await tick();
    finish(made.controller);
    const [x, y] = await Promise.all(reads);
    assert.deepEqual([[...x.value], [...y.value]], [[5], [5]]);
    assert.equal((await a.read(new Uint8Array(1))).done, true);
    assert.equal((await b.read(new Uint8Array(1))).done, true);
  }
});

test("a branch canceled while its read is under way: the other gets the chunk", async () => {
  const made = make();
  const [a, b] = made.stream.tee().map((branch) => branch.getReader({ mode: "byob" }));
  const read = a.read(new Uint8Array(4));
  const other = b.read(new Uint8Array(4));
  await tick();
  const canceled = a.cancel("a");
  assert.deepEqual(await read, { value: undefined, done: true });
  made.controller.byobRequest.view[0] = 3;
  made.controller.byobRequest.respond(1);
  assert.deepEqual([...(await other).value], [3]);
  b.cancel("b");
  await canceled;
  assert.deepEqual(made.canceled, ["a", "b"]);
});

test("errors reach both branches, also after the kind of reader has changed", async () => {
  const made = make();
  const error = new Error("e");
  const [a, b] = made.stream.tee();
  const byob = a.getReader({ mode: "byob" });
  const read = byob.read(new Uint8Array(4));
  const waits = b.getReader();
  const other = waits.read();
  await tick();
  made.controller.error(error);
  await assert.rejects(read, { value: error });
  await assert.rejects(other, { value: error });
  await assert.rejects(byob.closed, { value: error });
  await assert.rejects(waits.closed, { value: error });
  assert.equal(await Promise.race([byob.cancel().catch((e) => e), tick()]), error);
});

test("nothing is read of a source before a branch is, and a source that has failed is not pulled", async () => {
  const made = make();
  const [a] = made.stream.tee();
  await tick();
  assert.equal(made.pulls, 0);
  const error = new Error("e");
  made.controller.error(error);
  await assert.rejects(a.getReader().read(), { value: error });
  assert.equal(made.pulls, 0);
});

test("autoAllocateChunkSize of the source holds for default reads of the branches", async () => {
  const made = make({ autoAllocateChunkSize: 32, pull(c) { made.size = c.byobRequest.view.byteLength; c.byobRequest.view[0] = 1; c.byobRequest.respond(1); } });
  const [a, b] = made.stream.tee().map((branch) => branch.getReader());
  assert.deepEqual([[...(await a.read()).value], [...(await b.read()).value], made.size], [[1], [1], 32]);
});

test("a source that ends within an element of a branch's view: that branch fails, the other ends", async () => {
  const made = make();
  const [a, b] = made.stream.tee();
  const wide = a.getReader({ mode: "byob" });
  const read = wide.read(new Uint16Array(2));
  await tick();
  made.controller.enqueue(new Uint8Array([1]));
  await tick();
  made.controller.close();
  made.controller.byobRequest?.respond(0);
  await assert.rejects(read, TypeError);
  const reader = b.getReader();
  assert.deepEqual([...(await reader.read()).value], [1]);
  assert.equal((await reader.read()).done, true);
});
