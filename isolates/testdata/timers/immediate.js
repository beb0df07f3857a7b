// setImmediate and clearImmediate of Node and Workers.

test("setImmediate calls back with its arguments, after what is queued", async () => {
  const order = [];
  const done = new Promise((resolve) => {
    setTimeout(() => order.push("timeout"), 0);
    setImmediate((...args) => order.push(args), 1, 2);
    setImmediate(function () {
      order.push(this === globalThis);
      resolve();
    });
  });
  queueMicrotask(() => order.push("microtask"));
  order.push("now");
  await done;
  assert.deepEqual(order, ["now", "microtask", "timeout", [1, 2], true]);
});

test("clearImmediate", async () => {
  let ran = false;
  const immediate = setImmediate(() => { ran = true; });
  assert.equal(typeof immediate, "object");
  assert.ok(immediate.ref() === immediate && immediate.unref() === immediate && immediate.hasRef());
  clearImmediate(immediate);
  clearImmediate(immediate);
  clearImmediate();
  clearImmediate(null);
  await new Promise((resolve) => setTimeout(resolve, 2));
  assert.equal(ran, false);
  for (const bad of [3, {}, "1"]) assert.throws(() => clearImmediate(bad), TypeError);
  for (const bad of [undefined, 3, "code"]) assert.throws(() => setImmediate(bad), TypeError);
  assert.throws(() => setImmediate(), TypeError);
  assert.throws(() => new immediate.constructor(), TypeError);
});

test("what a callback throws is reported, and nothing else", async () => {
  const seen = [];
  addEventListener("error", (event) => { seen.push(event.error.message); event.preventDefault(); }, { once: true });
  setImmediate(() => { throw new Error("boo"); });
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(seen, ["boo"]);
});
