// AsyncContext.Variable and AsyncContext.Snapshot.

const sleep = (ms = 0) => new Promise((done) => setTimeout(done, ms));

test("shape", () => {
  assert.equal(Object.prototype.toString.call(AsyncContext), "[object AsyncContext]");
  assert.equal(AsyncContext.Variable.name, "Variable");
  assert.equal(AsyncContext.Snapshot.name, "Snapshot");
  assert.equal(Object.prototype.toString.call(new AsyncContext.Variable()), "[object AsyncContext.Variable]");
  assert.equal(Object.prototype.toString.call(new AsyncContext.Snapshot()), "[object AsyncContext.Snapshot]");
  assert.deepEqual([AsyncContext.Variable.length, AsyncContext.Snapshot.length, AsyncContext.Snapshot.wrap.length], [0, 0, 1]);
  assert.deepEqual([AsyncContext.Variable.prototype.run.length, AsyncContext.Variable.prototype.get.length, AsyncContext.Snapshot.prototype.run.length], [2, 0, 1]);
  assert.throws(() => AsyncContext.Variable(), TypeError);
  assert.throws(() => AsyncContext.Variable.prototype.get.call({}), TypeError);
  assert.throws(() => AsyncContext.Variable.prototype.get.call(new AsyncLocalStorage()), TypeError);
  assert.throws(() => AsyncContext.Snapshot.prototype.run.call({}, () => {}), TypeError);
  assert.throws(() => AsyncContext.Variable.prototype.name, TypeError);
});

test("values", async () => {
  const v = new AsyncContext.Variable({ name: "v", defaultValue: 0 });
  const w = new AsyncContext.Variable();
  assert.deepEqual([v.name, v.get(), w.name, w.get()], ["v", 0, "", undefined]);
  assert.deepEqual(v.run(1, (...args) => [v.get(), w.get(), ...args], "x"), [1, undefined, "x"]);
  await v.run(1, async () => {
    await sleep(1);
    assert.equal(v.get(), 1);
    await w.run(2, async () => { await null; assert.deepEqual([v.get(), w.get()], [1, 2]); });
    assert.deepEqual([v.get(), w.get()], [1, undefined]);
    v.run(undefined, () => assert.equal(v.get(), undefined));
  });
  assert.equal(v.get(), 0);
  assert.throws(() => v.run(1), TypeError);
});

test("snapshots", async () => {
  const v = new AsyncContext.Variable();
  const { snapshot, wrapped } = v.run("then", () => ({ snapshot: new AsyncContext.Snapshot(), wrapped: AsyncContext.Snapshot.wrap(function named(a, b) { return [this, v.get(), a, b]; }) }));
  await v.run("now", async () => {
    assert.equal(snapshot.run(() => v.get()), "then");
    assert.equal(snapshot.run((x) => x, 5), 5);
    const o = {};
    assert.deepEqual(wrapped.call(o, 1, 2), [o, "then", 1, 2]);
    assert.deepEqual([wrapped.name, wrapped.length], ["named", 2]);
    assert.equal(await snapshot.run(async () => { await sleep(1); return v.get(); }), "then");
    assert.equal(v.get(), "now");
  });
  assert.throws(() => snapshot.run(), TypeError);
  assert.throws(() => AsyncContext.Snapshot.wrap(1), TypeError);
});

test("it shares the frames of AsyncLocalStorage", () => {
  const v = new AsyncContext.Variable();
  const als = new AsyncLocalStorage();
  v.run(1, () => als.run(2, () => {
    const snapshot = new AsyncContext.Snapshot();
    als.exit(() => assert.deepEqual(snapshot.run(() => [v.get(), als.getStore()]), [1, 2]));
  }));
});
