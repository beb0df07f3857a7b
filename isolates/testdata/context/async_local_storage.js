// AsyncLocalStorage: values that follow code through promises, timers and microtasks.

const sleep = (ms = 0) => new Promise((done) => setTimeout(done, ms));

test("the class is a plain one", () => {
  const d = Object.getOwnPropertyDescriptor(globalThis, "AsyncLocalStorage");
  assert.deepEqual([d.writable, d.enumerable, d.configurable], [true, false, true]);
  assert.equal(AsyncLocalStorage.name, "AsyncLocalStorage");
  assert.equal(AsyncLocalStorage.length, 0);
  assert.throws(() => AsyncLocalStorage(), TypeError);
  assert.equal(AsyncLocalStorage.bind.length, 1);
  assert.equal(AsyncLocalStorage.snapshot.length, 0);
  const { prototype: p } = AsyncLocalStorage;
  assert.deepEqual(["getStore", "run", "exit", "enterWith", "disable"].map((name) => [p[name].name, p[name].length]),
    [["getStore", 0], ["run", 2], ["exit", 1], ["enterWith", 1], ["disable", 0]]);
  assert.deepEqual(Object.keys(p), []);
  for (const name of ["getStore", "run", "exit", "enterWith", "disable"]) {
    assert.throws(() => p[name].call({}, 1, () => {}), TypeError, name);
    assert.throws(() => p[name].call(undefined, 1, () => {}), TypeError, name);
  }
});

test("options", () => {
  assert.equal(new AsyncLocalStorage().getStore(), undefined);
  assert.equal(new AsyncLocalStorage().name, "");
  assert.equal(new AsyncLocalStorage({ defaultValue: 5 }).getStore(), 5);
  assert.equal(new AsyncLocalStorage({ name: "n" }).name, "n");
  assert.equal(new AsyncLocalStorage({ name: 7 }).name, "7");
  assert.throws(() => new AsyncLocalStorage(1), TypeError);
  assert.throws(() => new AsyncLocalStorage(null), TypeError);
});

test("run passes arguments, gives the result and puts back what was", () => {
  const als = new AsyncLocalStorage();
  const seen = als.run("a", function (...args) { return [this, als.getStore(), ...args]; }, 1, 2);
  assert.deepEqual(seen, [undefined, "a", 1, 2]);
  assert.equal(als.getStore(), undefined);
  als.run("a", () => {
    als.run("b", () => assert.equal(als.getStore(), "b"));
    assert.equal(als.getStore(), "a");
    assert.throws(() => als.run("c", () => { throw { own: 1 }; }), undefined);
    assert.equal(als.getStore(), "a");
  });
  assert.equal(als.getStore(), undefined);
  for (const store of [undefined, null, 0, NaN, "", {}, () => {}]) als.run(store, () => assert.equal(als.getStore(), store));
  assert.throws(() => als.run(1), TypeError);
  assert.throws(() => als.run(1, {}), TypeError);
});

test("storages do not meet", () => {
  const a = new AsyncLocalStorage();
  const b = new AsyncLocalStorage();
  a.run(1, () => b.run(2, () => {
    assert.deepEqual([a.getStore(), b.getStore()], [1, 2]);
    a.run(3, () => assert.deepEqual([a.getStore(), b.getStore()], [3, 2]));
    b.exit(() => assert.deepEqual([a.getStore(), b.getStore()], [1, undefined]));
    assert.deepEqual([a.getStore(), b.getStore()], [1, 2]);
  }));
});

test("await, then, catch, finally, thenables, async generators and Promise.all inherit", async () => {
  const als = new AsyncLocalStorage();
  const results = await als.run("x", async () => {
    const seen = [];
    const see = () => seen.push(als.getStore());
    await null; see();
    await Promise.resolve().then(see);
    await Promise.reject(new Error("x")).catch(see);
    await Promise.resolve().finally(see);
    await { then(f) { see(); f(); } }; see();
    await Promise.all([sleep(1).then(see), sleep(2).then(see)]);
    for await (const v of (async function* () { see(); yield 1; see(); })()) { void v; see(); }
    await new Promise((done) => queueMicrotask(() => { see(); done(); }));
    await new Promise((done) => setTimeout(() => { see(); done(); }, 1));
    await new Promise((done) => { let n = 0; const i = setInterval(() => { see(); if (++n === 2) { clearInterval(i); done(); } }, 1); });
    return seen;
  });
  assert.equal(results.length, 15);
  assert.ok(results.every((v) => v === "x"), results.join());
  assert.equal(als.getStore(), undefined);
});

test("a reaction runs where it was asked for, not where the promise was resolved", async () => {
  const als = new AsyncLocalStorage();
  const { promise, resolve } = Promise.withResolvers();
  const seen = [];
  als.run("asker", () => { promise.then(() => seen.push(als.getStore())); });
  promise.then(() => seen.push(als.getStore()));
  als.run("resolver", () => resolve());
  await sleep();
  assert.deepEqual(seen, ["asker", undefined]);
});

test("interleaved tasks keep their own", async () => {
  const als = new AsyncLocalStorage();
  const work = async (n) => {
    for (let i = 0; i < 5; i++) {
      await sleep((n * 7 + i) % 4);
      if (als.getStore() !== n) return `${als.getStore()} instead of ${n}`;
    }
    return "own";
  };
  const all = await Promise.all(Array.from({ length: 20 }, (_, n) => als.run(n, work, n)));
  assert.deepEqual([...new Set(all)], ["own"]);
});

test("listeners run in the dispatcher's context", () => {
  const als = new AsyncLocalStorage();
  const target = new EventTarget();
  const seen = [];
  als.run("adder", () => target.addEventListener("x", () => seen.push(als.getStore())));
  als.run("dispatcher", () => target.dispatchEvent(new Event("x")));
  target.dispatchEvent(new Event("x"));
  const controller = new AbortController();
  als.run("adder", () => { controller.signal.onabort = () => seen.push(als.getStore()); });
  als.run("aborter", () => controller.abort());
  assert.deepEqual(seen, ["dispatcher", undefined, "aborter"]);
});

test("errors are reported in the context of the callback", async () => {
  const als = new AsyncLocalStorage();
  const seen = [];
  const listener = (e) => { seen.push(als.getStore()); e.preventDefault(); };
  addEventListener("error", listener);
  als.run("timer", () => setTimeout(() => { throw new Error("x"); }, 1));
  als.run("micro", () => queueMicrotask(() => { throw new Error("x"); }));
  await sleep(5);
  removeEventListener("error", listener);
  assert.deepEqual(seen.sort(), ["micro", "timer"]);
});

test("exit", async () => {
  const als = new AsyncLocalStorage({ defaultValue: "default" });
  await als.run("a", async () => {
    assert.deepEqual(als.exit((...args) => [als.getStore(), ...args], 1), [undefined, 1]);
    assert.equal(als.getStore(), "a");
    assert.throws(() => als.exit(() => { throw new TypeError("x"); }), TypeError);
    assert.equal(als.getStore(), "a");
    await als.exit(async () => { await null; assert.equal(als.getStore(), undefined); });
    assert.equal(als.getStore(), "a");
  });
  assert.equal(als.getStore(), "default");
  assert.throws(() => als.exit(), TypeError);
});

test("enterWith and disable last for the rest of the code that runs", async () => {
  const als = new AsyncLocalStorage();
  await als.run("outer", async () => {
    als.enterWith("inner");
    assert.equal(als.getStore(), "inner");
    await sleep(1);
    assert.equal(als.getStore(), "inner");
    als.disable();
    assert.equal(als.getStore(), undefined);
    await null;
    assert.equal(als.getStore(), undefined);
    als.run("again", () => assert.equal(als.getStore(), "again"));
  });
  assert.equal(als.getStore(), undefined);
  als.run(1, () => { als.enterWith(2); });
  assert.equal(als.getStore(), undefined, "run puts back what was before it");
  let late;
  setTimeout(() => als.enterWith("timer"), 1);
  setTimeout(() => { late = als.getStore(); }, 2);
  await sleep(5);
  assert.equal(late, undefined, "a timer leaves nothing to the next");
});

test("bind", () => {
  const als = new AsyncLocalStorage();
  const receiver = {};
  const f = als.run("a", () => AsyncLocalStorage.bind(function (x, y) { return [this, als.getStore(), x, y]; }));
  assert.equal(f.length, 2);
  als.run("b", () => {
    assert.deepEqual(f.call(receiver, 1, 2), [receiver, "a", 1, 2]);
    assert.equal(f.call(receiver)[0], receiver);
    assert.equal(als.getStore(), "b");
  });
  assert.throws(() => AsyncLocalStorage.bind(), TypeError);
  assert.throws(() => AsyncLocalStorage.bind({}), TypeError);
  assert.throws(() => new f(), TypeError);
});

test("snapshot", async () => {
  const a = new AsyncLocalStorage();
  const b = new AsyncLocalStorage();
  const inside = a.run(1, () => b.run(2, () => AsyncLocalStorage.snapshot()));
  const outside = AsyncLocalStorage.snapshot();
  const get = (...args) => [a.getStore(), b.getStore(), ...args];
  assert.deepEqual(inside(get, "x"), [1, 2, "x"]);
  a.run(3, () => {
    assert.deepEqual(inside(get), [1, 2]);
    assert.deepEqual(outside(get), [undefined, undefined]);
    assert.deepEqual(get(), [3, undefined]);
  });
  assert.deepEqual(await inside(async () => { await sleep(1); return get(); }), [1, 2]);
  assert.throws(() => inside(5), TypeError);
});

test("deep nesting costs no chain", async () => {
  const als = new AsyncLocalStorage();
  let n = 0;
  const step = async (i) => { if (i === 0) return; await null; n += als.getStore(); await als.run(als.getStore(), step, i - 1); };
  await als.run(1, step, 1000);
  assert.equal(n, 1000);
});

test("subclasses work and patched prototypes are not asked", async () => {
  class Mine extends AsyncLocalStorage { getStore() { return ["mine", super.getStore()]; } }
  const als = new Mine();
  als.run(1, () => assert.deepEqual(als.getStore(), ["mine", 1]));
  const plain = new AsyncLocalStorage();
  let looked = 0;
  await patched(Object.prototype, "key", { get() { looked++; return undefined; } }, async () => {
    await patched(Object.prototype, "values", { get() { looked++; return undefined; } }, async () => {
      assert.equal(await plain.run("v", async () => { await null; return plain.getStore(); }), "v");
    });
  });
  assert.equal(looked, 0);
});

test("streams and fetch keep to the promise that is waited for", async () => {
  const als = new AsyncLocalStorage();
  await als.run("reader", async () => {
    const stream = new ReadableStream({ async pull(c) { await sleep(1); c.enqueue("x"); c.close(); } });
    for await (const chunk of stream) assert.deepEqual([chunk, als.getStore()], ["x", "reader"]);
    await fetch("http://127.0.0.1:1/").catch(() => assert.equal(als.getStore(), "reader"));
    assert.equal(als.getStore(), "reader");
  });
});
