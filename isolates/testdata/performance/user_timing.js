// performance.mark, measure, getEntries…, clear…; scheduler.wait.

const sleep = (ms = 0) => new Promise((done) => setTimeout(done, ms));
const reset = () => { performance.clearMarks(); performance.clearMeasures(); };
const names = (list) => list.map((e) => e.name);

test("mark", () => {
  reset();
  const before = performance.now();
  const m = performance.mark("a");
  assert.ok(m instanceof PerformanceMark && m instanceof PerformanceEntry);
  assert.deepEqual([m.name, m.entryType, m.duration, m.detail], ["a", "mark", 0, null]);
  assert.ok(m.startTime >= before && m.startTime <= performance.now());
  assert.equal(performance.getEntriesByName("a")[0], m);
  assert.equal(performance.mark(5).name, "5");
  assert.throws(() => performance.mark(), TypeError);
  assert.throws(() => performance.mark(Symbol()), TypeError);
  assert.equal(performance.mark("b", { startTime: 1.5 }).startTime, 1.5);
  assert.equal(performance.mark("b", null).detail, null);
  for (const startTime of [-1, NaN, Infinity, "x"]) assert.throws(() => performance.mark("c", { startTime }), TypeError, startTime);
  assert.throws(() => performance.mark("c", 5), TypeError);
});

test("details are cloned", () => {
  reset();
  const detail = { n: 1 };
  const m = performance.mark("d", { detail });
  detail.n = 2;
  assert.deepEqual(m.detail, { n: 1 });
  assert.equal(m.detail, m.detail);
  assert.equal(performance.mark("d", { detail: undefined }).detail, null);
  assert.equal(performance.mark("d", { detail: null }).detail, null);
  assert.equal(performance.mark("d", { detail: 0 }).detail, 0);
  assert.throws(() => performance.mark("e", { detail: () => {} }), "DataCloneError");
  assert.equal(performance.getEntriesByName("e").length, 0);
  assert.throws(() => performance.measure("e", { start: 0, detail: Symbol() }), "DataCloneError");
  assert.deepEqual(performance.measure("f", { start: 0, end: 1, detail: [1] }).detail, [1]);
});

test("the constructor of marks keeps nothing", () => {
  reset();
  const m = new PerformanceMark("x", { startTime: 3, detail: 4 });
  assert.deepEqual([m.name, m.startTime, m.detail, m.entryType], ["x", 3, 4, "mark"]);
  assert.equal(performance.getEntries().length, 0);
  assert.throws(() => new PerformanceMark(), TypeError);
  assert.throws(() => PerformanceMark("x"), TypeError);
  class Mine extends PerformanceMark {}
  assert.equal(new Mine("y").name, "y");
});

test("measure", () => {
  reset();
  performance.mark("s", { startTime: 10 });
  performance.mark("e", { startTime: 25 });
  const of = (...args) => { const m = performance.measure("m", ...args); return [m.startTime, m.duration]; };
  assert.deepEqual(of("s", "e"), [10, 15]);
  assert.deepEqual(of({ start: "s", end: "e" }), [10, 15]);
  assert.deepEqual(of({ start: 4, end: 9 }), [4, 5]);
  assert.deepEqual(of({ start: 4, duration: 9 }), [4, 9]);
  assert.deepEqual(of({ end: "e", duration: 5 }), [20, 5]);
  assert.deepEqual(of({ end: 30 }), [0, 30]);
  assert.deepEqual(of({ start: "e", end: "s" }), [25, -15]);
  assert.deepEqual(of(undefined, "e"), [0, 25]);
  assert.deepEqual(of({}, "e"), [0, 25]);
  assert.deepEqual(of(null, "e"), [0, 25]);
  assert.equal(of()[0], 0);
  assert.equal(of("s")[0], 10);
  assert.ok(of("s")[1] > 0);
  performance.mark("s", { startTime: 12 });
  assert.deepEqual(of("s", "e"), [12, 13], "the newest mark");
  const m = performance.measure("n");
  assert.ok(m instanceof PerformanceMeasure);
  assert.deepEqual([m.name, m.entryType, m.detail], ["n", "measure", null]);
});

test("measure refuses", () => {
  reset();
  performance.mark("s");
  assert.throws(() => performance.measure(), TypeError);
  assert.throws(() => performance.measure("m", "none"), "SyntaxError");
  assert.throws(() => performance.measure("m", "s", "none"), "SyntaxError");
  assert.throws(() => performance.measure("m", 5), "SyntaxError", "a number is a name here");
  for (const options of [{ detail: 1 }, { duration: 1 }, { start: 1, end: 2, duration: 1 }, { start: -1 }, { start: 1, duration: -1 }, { start: NaN }, { start: 0, duration: "x" }]) {
    assert.throws(() => performance.measure("m", options), TypeError, JSON.stringify(options));
  }
  assert.throws(() => performance.measure("m", { start: 1 }, "s"), TypeError);
  assert.throws(() => performance.measure("m", { start: "none" }), "SyntaxError");
  assert.equal(performance.getEntriesByType("measure").length, 0);
  const seen = [];
  performance.measure("m", new Proxy({}, { get(_, key) { seen.push(key); } }));
  assert.deepEqual(seen, ["detail", "duration", "end", "start"]);
});

test("entries are found by name and type, by their start", () => {
  reset();
  performance.mark("b", { startTime: 5 });
  performance.mark("a", { startTime: 1 });
  performance.measure("a", { start: 3, end: 4 });
  performance.mark("c", { startTime: 5 });
  assert.deepEqual(names(performance.getEntries()), ["a", "a", "b", "c"]);
  assert.deepEqual(names(performance.getEntriesByType("mark")), ["a", "b", "c"]);
  assert.deepEqual(names(performance.getEntriesByType("measure")), ["a"]);
  assert.deepEqual(performance.getEntriesByType("resource"), []);
  assert.equal(performance.getEntriesByName("a").length, 2);
  assert.equal(performance.getEntriesByName("a", "mark").length, 1);
  assert.equal(performance.getEntriesByName("a", undefined).length, 2);
  assert.equal(performance.getEntriesByName("A").length, 0);
  assert.throws(() => performance.getEntriesByName(), TypeError);
  assert.throws(() => performance.getEntriesByType(), TypeError);
  assert.notEqual(performance.getEntries(), performance.getEntries());
  performance.clearMarks("a");
  assert.deepEqual(names(performance.getEntries()), ["a", "b", "c"]);
  performance.clearMeasures("b");
  performance.clearMeasures();
  assert.deepEqual(names(performance.getEntries()), ["b", "c"]);
  performance.clearMarks();
  assert.deepEqual(performance.getEntries(), []);
});

test("toJSON", () => {
  reset();
  assert.deepEqual(JSON.parse(JSON.stringify(performance.mark("j", { startTime: 2, detail: { a: 1 } }))), { name: "j", entryType: "mark", startTime: 2, duration: 0, detail: { a: 1 } });
  assert.deepEqual(JSON.parse(JSON.stringify(performance.measure("j", { start: 1, end: 3 }))), { name: "j", entryType: "measure", startTime: 1, duration: 2, detail: null });
  assert.throws(() => PerformanceEntry.prototype.toJSON.call({}), TypeError);
});

test("the buffer has an end", () => {
  reset();
  for (let i = 0; i < 10_050; i++) performance.mark("many");
  assert.equal(performance.getEntries().length, 10_000);
  assert.equal(performance.mark("over").name, "over");
  assert.equal(performance.getEntriesByName("over").length, 0);
  reset();
  performance.mark("again");
  assert.equal(performance.getEntries().length, 1);
});

test("receivers and constructors", () => {
  for (const name of ["now", "toJSON", "getEntries", "getEntriesByType", "getEntriesByName", "mark", "measure", "clearMarks", "clearMeasures"]) {
    assert.throws(() => Performance.prototype[name].call({}, "x"), TypeError, name);
    assert.throws(() => Performance.prototype[name].call(null, "x"), TypeError, name);
  }
  assert.throws(() => new PerformanceEntry(), TypeError);
  assert.throws(() => new PerformanceMeasure(), TypeError);
  assert.equal(Object.getPrototypeOf(PerformanceMark), PerformanceEntry);
  assert.throws(() => Object.getOwnPropertyDescriptor(PerformanceMark.prototype, "detail").get.call(performance.measure("x")), TypeError);
});

test("a changed parent sees nothing, and what it makes is no entry", () => {
  const parent = Object.getPrototypeOf(PerformanceMark);
  const args = [];
  Object.setPrototypeOf(PerformanceMark, function (...list) { args.push(...list); return Object.create(new.target.prototype); });
  try {
    assert.throws(() => performance.mark("x").name, TypeError);
  } finally {
    Object.setPrototypeOf(PerformanceMark, parent);
  }
  assert.deepEqual(args, []);
  assert.throws(() => new PerformanceEntry(), TypeError);
  reset();
  assert.equal(performance.mark("x").name, "x");
});

test("scheduler.wait", async () => {
  const before = performance.now();
  assert.equal(await scheduler.wait(5), undefined);
  assert.ok(performance.now() - before >= 4.9);
  await scheduler.wait(-5);
  const controller = new AbortController();
  const waiting = scheduler.wait(60_000, { signal: controller.signal });
  controller.abort("why");
  await assert.rejects(waiting, { value: "why" });
  await assert.rejects(scheduler.wait(1, { signal: AbortSignal.abort("gone") }), { value: "gone" });
  await scheduler.wait(1, { signal: new AbortController().signal });
  await assert.rejects(scheduler.wait(), TypeError);
  await assert.rejects(scheduler.wait(1, { signal: {} }), TypeError);
  await assert.rejects(scheduler.wait(1, 5), TypeError);
  await assert.rejects(scheduler.wait.call({}, 1), TypeError);
  await sleep();
});
