// PerformanceObserver.

const sleep = (ms = 0) => new Promise((done) => setTimeout(done, ms));
const reset = () => { performance.clearMarks(); performance.clearMeasures(); };
const names = (list) => list.map((e) => `${e.entryType} ${e.name}`);

// seen makes an observer whose calls are kept, and waits for the next.
function seen() {
  const calls = [];
  let wake;
  const observer = new PerformanceObserver(function (...args) {
    calls.push([this, ...args]);
    wake?.();
  });
  return { calls, observer, next: () => new Promise((resolve) => { wake = resolve; }) };
}

test("supportedEntryTypes", () => {
  const types = PerformanceObserver.supportedEntryTypes;
  assert.deepEqual(types, ["mark", "measure"]);
  assert.equal(types, PerformanceObserver.supportedEntryTypes);
  assert.ok(Object.isFrozen(types) && Array.isArray(types));
  const d = Object.getOwnPropertyDescriptor(PerformanceObserver, "supportedEntryTypes");
  assert.deepEqual([d.enumerable, d.configurable, d.set, d.get.name], [true, true, undefined, "get supportedEntryTypes"]);
});

test("arguments", () => {
  for (const bad of [[], [5], [{}], [null]]) assert.throws(() => new PerformanceObserver(...bad), TypeError);
  assert.throws(() => new PerformanceObserverEntryList(), TypeError);
  const o = new PerformanceObserver(() => {});
  for (const bad of [undefined, null, {}, 5, { buffered: true }, { entryTypes: ["mark"], type: "mark" }, { entryTypes: ["mark"], buffered: false }, { entryTypes: "mark" }]) {
    assert.throws(() => o.observe(bad), TypeError);
  }
  const order = [];
  o.observe(new Proxy({}, { get(_, key) { order.push(key); return key === "type" ? "mark" : undefined; } }));
  assert.deepEqual(order, ["buffered", "entryTypes", "type"]);
  assert.throws(() => o.observe({ entryTypes: ["mark"] }), "InvalidModificationError");
  const other = new PerformanceObserver(() => {});
  other.observe({ entryTypes: ["nothing"] });
  assert.throws(() => other.observe({ type: "mark" }), "InvalidModificationError");
  o.disconnect();
});

test("a callback gets what came since, in one list", async () => {
  reset();
  const { calls, observer, next } = seen();
  observer.observe({ entryTypes: ["mark", "measure", "unknown"] });
  performance.mark("late", { startTime: 20 });
  performance.mark("early", { startTime: 10 });
  performance.measure("m", { start: 5, end: 6 });
  assert.equal(calls.length, 0);
  await next();
  assert.equal(calls.length, 1);
  const [self, list, given, options] = calls[0];
  assert.ok(self === observer && given === observer && list instanceof PerformanceObserverEntryList);
  assert.deepEqual(options, { droppedEntriesCount: 0 });
  assert.deepEqual(names(list.getEntries()), ["measure m", "mark early", "mark late"]);
  assert.deepEqual(names(list.getEntriesByType("mark")), ["mark early", "mark late"]);
  assert.deepEqual(names(list.getEntriesByName("late")), ["mark late"]);
  assert.deepEqual(list.getEntriesByName("late", "measure"), []);
  assert.equal(list.getEntriesByName("late")[0], performance.getEntriesByName("late")[0]);
  performance.mark("again");
  await next();
  assert.deepEqual([names(calls[1][1].getEntries()), calls[1][3]], [["mark again"], {}]);
  observer.disconnect();
});

test("types are added one by one, and lists replace one another", async () => {
  reset();
  const one = seen();
  one.observer.observe({ type: "mark" });
  one.observer.observe({ type: "measure" });
  one.observer.observe({ type: "mark" });
  one.observer.observe({ type: "unknown" });
  const many = seen();
  many.observer.observe({ entryTypes: ["mark"] });
  many.observer.observe({ entryTypes: ["measure"] });
  performance.mark("a");
  performance.measure("b");
  await many.next();
  await sleep();
  assert.deepEqual(names(one.calls[0][1].getEntries()).sort(), ["mark a", "measure b"]);
  assert.deepEqual(names(many.calls[0][1].getEntries()), ["measure b"]);
  one.observer.disconnect();
  many.observer.disconnect();
});

test("buffered gives what there was before", async () => {
  reset();
  performance.mark("before");
  performance.measure("no");
  const { calls, observer, next } = seen();
  observer.observe({ type: "mark", buffered: true });
  performance.mark("after");
  await next();
  assert.deepEqual(names(calls[0][1].getEntries()), ["mark before", "mark after"]);
  observer.disconnect();
});

test("takeRecords and disconnect", async () => {
  reset();
  const { calls, observer } = seen();
  assert.deepEqual(observer.takeRecords(), []);
  observer.observe({ type: "mark" });
  performance.mark("a");
  performance.mark("b");
  assert.deepEqual(names(observer.takeRecords()), ["mark a", "mark b"]);
  assert.deepEqual(observer.takeRecords(), []);
  await sleep();
  performance.mark("c");
  observer.disconnect();
  assert.deepEqual(observer.takeRecords(), []);
  performance.mark("d");
  await sleep();
  assert.equal(calls.length, 0);
  observer.observe({ type: "mark" });
  performance.mark("e");
  assert.deepEqual(names(observer.takeRecords()), ["mark e"]);
  observer.disconnect();
});

test("what a callback throws is reported, and the next is called; one that observes in there sees what comes then", async () => {
  reset();
  const reported = [];
  const listener = (e) => { e.preventDefault(); reported.push(e.error); };
  addEventListener("error", listener);
  const throws = new PerformanceObserver(() => { throw "mine"; });
  throws.observe({ type: "mark" });
  const { calls, observer, next } = seen();
  observer.observe({ type: "mark" });
  performance.mark("a");
  await next();
  assert.deepEqual([reported, calls.length], [["mine"], 1]);
  throws.disconnect();
  observer.disconnect();
  removeEventListener("error", listener);
});

test("entries that find no room are counted, and seen", async () => {
  reset();
  for (let i = 0; i < 10000; i++) performance.mark("full");
  const { calls, observer, next } = seen();
  observer.observe({ type: "mark" });
  performance.mark("more");
  await next();
  assert.deepEqual([names(calls[0][1].getEntries()), calls[0][3].droppedEntriesCount], [["mark more"], 1]);
  observer.disconnect();
  reset();
});
