// In what order things happen, and what happens while other things are under way.

const tick = () => new Promise((resolve) => setTimeout(resolve, 0));

test("enqueue() calls no sink of a pipe", async () => {
  for (const type of [undefined, "bytes"]) {
    let controller;
    let within = false;
    const written = [];
    const source = new ReadableStream({ type, start(c) { controller = c; } });
    const pipe = source.pipeTo(new WritableStream({ write(chunk) { written.push(within, ...chunk); } }));
    await tick();
    within = true;
    controller.enqueue(new Uint8Array([1]));
    within = false;
    controller.close();
    await pipe;
    assert.deepEqual(written, [false, 1]);
  }
});

test("a chunk that was read is written before a pipe ends", async () => {
  for (const [end, error] of [[(c, a) => a.abort("x"), "x"], [(c) => c.error("y"), "y"]]) {
    let controller;
    const log = [];
    const abort = new AbortController();
    const source = new ReadableStream({ start(c) { controller = c; } }, { highWaterMark: 0 });
    const pipe = source.pipeTo(new WritableStream({ write(chunk) { log.push(chunk); }, abort(reason) { log.push("abort", reason); } }), { signal: abort.signal });
    await tick();
    controller.enqueue("c");
    end(controller, abort);
    await assert.rejects(pipe, { value: error });
    assert.deepEqual(log, ["c", "abort", error]);
  }
});

test("a sink that fails as a chunk is read", async () => {
  let source;
  let sink;
  const rs = new ReadableStream({ start(c) { source = c; } });
  const pipe = rs.pipeTo(new WritableStream({ start(c) { sink = c; } }));
  await tick();
  source.enqueue(1);
  sink.error("s");
  await assert.rejects(pipe, { value: "s" });
  await tick();
  assert.equal(rs.locked, false);
});

test("releaseLock while an abort is under way rejects the closed promise that there is", async () => {
  let release;
  const s = new WritableStream({ abort() { return new Promise((resolve) => { release = resolve; }); } });
  await tick();
  const w = s.getWriter();
  const { closed, ready } = w;
  const aborted = w.abort("x");
  await tick();
  w.releaseLock();
  assert.equal(w.closed, closed);
  assert.notEqual(w.ready, ready);
  await assert.rejects(closed, TypeError);
  await assert.rejects(w.ready, TypeError);
  release();
  await aborted;
  const later = s.getWriter();
  await assert.rejects(later.closed, { value: "x" });
  const settled = later.closed;
  later.releaseLock();
  assert.notEqual(later.closed, settled);
  await assert.rejects(later.closed, TypeError);
});

test("releaseLock after close gives a new closed promise", async () => {
  const w = new WritableStream().getWriter();
  await w.close();
  const { closed } = w;
  w.releaseLock();
  assert.notEqual(w.closed, closed);
  await closed;
  await assert.rejects(w.closed, TypeError);
});

test("the controller's signal has the reason of the first abort", async () => {
  let controller;
  const s = new WritableStream({ start(c) { controller = c; }, write: () => new Promise(() => {}) });
  const w = s.getWriter();
  w.write(1).catch(() => {});
  await tick();
  w.abort("first").catch(() => {});
  w.abort("second").catch(() => {});
  assert.deepEqual([controller.signal.aborted, controller.signal.reason], [true, "first"]);
  const other = new WritableStream({ start(c) { controller = c; } });
  const { signal } = controller;
  const seen = [];
  signal.addEventListener("abort", () => { seen.push(signal.reason.name, other.getWriter === undefined); });
  await other.abort(undefined);
  assert.deepEqual(seen, ["AbortError", false]);
});

test("an abort from within the signal's event", async () => {
  let signal;
  const log = [];
  const s = new WritableStream({ start(c) { signal = c.signal; }, abort(reason) { log.push(reason); } });
  let inner;
  signal.addEventListener("abort", () => { inner = s.abort("inner"); });
  await tick();
  const outer = s.abort("outer");
  await Promise.all([inner, outer]);
  assert.deepEqual(log, ["inner"]);
  assert.equal(signal.reason, "outer");
});

test("next() reads at once when no call is under way", async () => {
  let pulls = 0;
  const s = new ReadableStream({ pull(c) { c.enqueue(++pulls); } }, { highWaterMark: 0 });
  await tick();
  const it = s.values();
  for (const n of [1, 2, 3]) {
    const next = it.next();
    assert.equal(pulls, n);
    assert.deepEqual(await next, { value: n, done: false });
  }
  const both = [it.next(), it.next(), it.return("r"), it.next()];
  assert.deepEqual(await Promise.all(both), [{ value: 4, done: false }, { value: 5, done: false }, { value: "r", done: true }, { value: undefined, done: true }]);
});

test("ReadableStream.from: what a sync iterator's promises become", async () => {
  const log = [];
  const of = (...values) => ({ [Symbol.iterator]() { return this; }, next() { return { value: values.shift(), done: values.length === 0 }; },
    return(reason) { log.push("return", reason); return { done: true, value: Promise.resolve() }; } });
  await assert.rejects(ReadableStream.from(of(Promise.reject("no"), 1)).getReader().read(), { value: "no" });
  assert.deepEqual(log, ["return", undefined]);
  const reader = ReadableStream.from(of(1, 2, 3)).getReader();
  await reader.read();
  await reader.cancel("why");
  assert.deepEqual(log, ["return", undefined, "return", "why"]);
  function* last() { return Promise.reject("end"); }
  await assert.rejects(ReadableStream.from(last()).getReader().read(), { value: "end" });
  const bad = of(1, 2);
  bad.return = () => ({ done: true, value: Promise.reject("late") });
  await assert.rejects(ReadableStream.from(bad).cancel(), { value: "late" });
  bad.return = 5;
  await assert.rejects(ReadableStream.from(bad).cancel(), TypeError);
});

test("ReadableStream.from takes what its argument's prototype gives, and refuses the rest", () => {
  for (const bad of [null, undefined, 0, NaN, true, {}, Object.create(null), () => 42, Symbol(), 5n, { [Symbol.asyncIterator]: 1 },
    { [Symbol.iterator]: () => 42 }, { [Symbol.asyncIterator]: () => 42 }]) assert.throws(() => ReadableStream.from(bad), TypeError, String(bad?.constructor));
  const order = [];
  const error = new Error("mine");
  assert.throws(() => ReadableStream.from({ get [Symbol.asyncIterator]() { order.push("async"); return null; }, [Symbol.iterator]() { order.push("sync"); throw error; } }), { value: error });
  assert.deepEqual(order, ["async", "sync"]);
});

test("a transform's sides: flush, cancel and abort run one of them only", async () => {
  const log = [];
  const make = () => new TransformStream({ flush() { log.push("flush"); return tick(); }, cancel(reason) { log.push("cancel", reason); return tick(); } });
  let t = make();
  await tick();
  const [a, b] = [t.writable.abort("w"), t.readable.cancel("r")];
  await Promise.all([a, b]);
  assert.deepEqual(log.splice(0), ["cancel", "w"]);
  t = make();
  await tick();
  await Promise.all([t.writable.close(), t.readable.cancel("r")]);
  assert.deepEqual(log.splice(0), ["flush"]);
  t = make();
  await tick();
  const canceled = t.readable.cancel("r");
  const closed = t.writable.close();
  await canceled;
  await closed.catch(() => {});
  assert.deepEqual(log.splice(0), ["cancel", "r"]);
  const failing = new TransformStream({ cancel() { throw "c"; } });
  await assert.rejects(failing.readable.cancel("r"), { value: "c" });
  await assert.rejects(failing.writable.getWriter().closed, { value: "c" });
  const aborting = new TransformStream({ cancel() { throw "c"; } });
  await tick();
  await assert.rejects(aborting.writable.abort("r"), { value: "c" });
  await assert.rejects(aborting.readable.getReader().closed, { value: "c" });
});

// settled gives the names of promises in the order in which they settle; ! is a rejection.
async function settled(promises, go) {
  const log = [];
  for (const [name, promise] of Object.entries(promises)) promise.then(() => log.push(name), () => log.push(`${name}!`));
  go();
  await tick();
  await tick();
  return log.join(" ");
}

test("promises of a stream settle in the standard's order", async () => {
  const held = (method) => {
    const held = {};
    held.stream = new WritableStream({ [method]: () => new Promise((resolve, reject) => { held.resolve = resolve; held.reject = reject; }) });
    return held;
  };
  let h = held("close");
  await tick();
  let w = h.stream.getWriter();
  let close = w.close();
  assert.equal(await settled({ closed: w.closed, close }, () => h.resolve()), "close closed");
  for (const [end, expected] of [[(x) => x.resolve(), "close abort closed"], [(x) => x.reject(), "close! abort! closed!"]]) {
    h = held("close");
    await tick();
    w = h.stream.getWriter();
    close = w.close();
    assert.equal(await settled({ closed: w.closed, abort: w.abort("a"), close }, () => end(h)), expected);
  }
  h = held("write");
  await tick();
  w = h.stream.getWriter();
  const [one, two] = [w.write(1), w.write(2)];
  close = w.close();
  await tick();
  assert.equal(await settled({ closed: w.closed, close, two, one, abort: w.abort("a") }, () => h.resolve()), "one two! abort close! closed!");
  for (const [end, expected] of [[(c) => c.close(), "closed read"], [(c) => c.error(1), "closed! read!"]]) {
    let controller;
    const r = new ReadableStream({ start(c) { controller = c; } }).getReader();
    assert.equal(await settled({ read: r.read(), closed: r.closed }, () => end(controller)), expected);
  }
});

test("a released reader's buffer goes to the next reader as bytes", async () => {
  let c;
  const s = new ReadableStream({ type: "bytes", start(x) { c = x; } });
  let r = s.getReader({ mode: "byob" });
  const first = r.read(new Uint8Array(4));
  r.releaseLock();
  r = s.getReader({ mode: "byob" });
  const second = r.read(new Uint16Array(4));
  assert.equal(c.byobRequest.view.length, 4);
  c.byobRequest.view[0] = 1;
  c.byobRequest.respond(1);
  c.enqueue(new Uint8Array([2, 3]));
  await assert.rejects(first, TypeError);
  assert.deepEqual([...(await second).value], [0x201]);
});

test("the iterator's members reject, whatever they are called on", async () => {
  const proto = Object.getPrototypeOf(new ReadableStream().values());
  assert.deepEqual(Object.getOwnPropertyNames(proto), ["next", "return"]);
  assert.deepEqual([proto.next.length, proto.return.length, proto[Symbol.toStringTag]], [0, 1, "ReadableStream AsyncIterator"]);
  for (const self of [null, undefined, 1, {}]) {
    await assert.rejects(proto.next.call(self), TypeError);
    await assert.rejects(proto.return.call(self), TypeError);
  }
});

// turns gives what f logs, with the number of the microtask in which it did.
async function turns(f) {
  const log = [];
  let n = 0;
  let over = false;
  (async () => { while (!over && n < 40) { await null; n++; } })();
  await f((what) => log.push(`${what}@${n}`));
  await tick();
  over = true;
  return log.join(" ");
}

test("what callbacks return becomes a promise as Web IDL has it: another that follows it", async () => {
  const p = () => Promise.resolve();
  const pulls = (l, source, mark) => new ReadableStream({ ...source, pull(c) { l("p"); c.enqueue(source.type ? new Uint8Array(1) : 1); return source.wait && p(); } }, { highWaterMark: mark });
  const cases = [
    ["p@1", (l) => pulls(l, { start() {} }, 1)], ["p@3", (l) => pulls(l, { start: p }, 1)], ["p@3", (l) => pulls(l, { async start() {} }, 1)],
    ["p@2", (l) => pulls(l, { start: () => ({ then(f) { f(); } }) }, 1)],
    ["p@1 p@2 p@3", (l) => pulls(l, {}, 3)], ["p@1 p@4 p@7", (l) => pulls(l, { wait: true }, 3)],
    ["p@3 p@4", (l) => pulls(l, { type: "bytes", start: p }, 2)], ["p@1 p@4 p@7", (l) => pulls(l, { type: "bytes", wait: true }, 3)],
    ["c@2", (l) => { new ReadableStream({ cancel() {} }).cancel().then(() => l("c")); }], ["c@4", (l) => { new ReadableStream({ cancel: p }).cancel().then(() => l("c")); }],
    ["w1@1 w2@4 d1@5 d2@8 c@9", (l) => writes(l, new WritableStream({ write(c) { l(`w${c}`); return p(); } }), 2)],
    ["w1@1 w2@2 d1@3 d2@4 c@5", (l) => writes(l, new WritableStream({ write(c) { l(`w${c}`); } }), 2)],
    ["w1@3 d1@5 c@6", (l) => writes(l, new WritableStream({ start: p, write(c) { l(`w${c}`); } }), 1)],
    ["c@5", (l) => writes(l, new WritableStream({ close: p }), 0)], ["a@5", (l) => { new WritableStream({ abort: p }).abort().then(() => l("a")); }],
    ["t1@4 r@5 f@9 d1@10 c@14", (l) => { const t = new TransformStream({ transform(c, k) { l(`t${c}`); k.enqueue(c); return p(); }, flush() { l("f"); return p(); } }); reads(l, t.readable, 1); writes(l, t.writable, 1); }],
    ["t1@5 r@6 d1@9 c@11", (l) => { const t = new TransformStream({ start: p, transform(c, k) { l(`t${c}`); k.enqueue(c); } }); reads(l, t.readable, 1); writes(l, t.writable, 1); }],
    ["r@5 r@9", (l) => reads(l, ReadableStream.from([1, 2]), 2)], ["r@5", (l) => reads(l, ReadableStream.from((async function* () { yield 1; })()), 1)],
  ];
  for (const [expected, f] of cases) assert.equal(await turns(f), expected, String(f));
});

function writes(l, stream, n) {
  const w = stream.getWriter();
  for (let i = 1; i <= n; i++) w.write(i).then(() => l(`d${i}`));
  w.close().then(() => l("c"));
}

function reads(l, stream, n) {
  const r = stream.getReader();
  for (let i = 0; i < n; i++) r.read().then(() => l("r"));
}

test("a then that a guest has put in place is not called for the promises of its callbacks", async () => {
  const then = Promise.prototype.then;
  let called = 0;
  const log = [];
  const made = Promise.resolve();
  await patched(Promise.prototype, "then", { value(...args) { called++; return Reflect.apply(then, this, args); }, writable: true }, () => {
    new ReadableStream({ start: () => made, pull(c) { log.push("pull"); c.close(); return made; } });
    new WritableStream({ start: () => made });
    return new Promise((resolve) => { setTimeout(resolve, 5); });
  });
  assert.deepEqual([log.join(), called], ["pull", 0]);
});
