// onerror, onunhandledrejection, onrejectionhandled.

const sleep = (ms = 0) => new Promise((done) => setTimeout(done, ms));

test("they are accessors of the global object", () => {
  for (const name of ["onerror", "onunhandledrejection", "onrejectionhandled"]) {
    const d = Object.getOwnPropertyDescriptor(globalThis, name);
    assert.deepEqual([typeof d.get, typeof d.set, d.enumerable, d.configurable], ["function", "function", true, true], name);
    assert.deepEqual([d.get.name, d.set.name], [`get ${name}`, `set ${name}`]);
    assert.equal(globalThis[name], null);
    const f = () => {};
    globalThis[name] = f;
    assert.equal(globalThis[name], f);
    globalThis[name] = 5;
    assert.equal(globalThis[name], null);
    assert.equal(d.get.call(undefined), null);
    assert.throws(() => d.get.call({}), TypeError);
    assert.throws(() => d.set.call({}, f), TypeError);
  }
});

test("onerror gets five arguments; true prevents", async () => {
  let got;
  onerror = function (...args) { got = [this === globalThis, ...args]; return true; };
  let prevented;
  const after = (e) => { prevented = e.defaultPrevented; e.preventDefault(); };
  addEventListener("error", after);
  const error = new Error("expected");
  reportError(error);
  assert.deepEqual(got.slice(0, 5), [true, "Error: expected", "", 0, 0]);
  assert.equal(got[5], error);
  assert.equal(prevented, true);
  onerror = () => false;
  reportError(error);
  assert.equal(prevented, false);
  onerror = () => 1;
  reportError(error);
  assert.equal(prevented, false, "true and nothing else");
  const e = new Event("error", { cancelable: true });
  onerror = (...args) => { got = args; return false; };
  dispatchEvent(e);
  assert.equal(got.length, 1);
  assert.equal(got[0], e);
  assert.ok(e.defaultPrevented, "for another event it is an ordinary handler");
  onerror = null;
  removeEventListener("error", after);
});

test("onerror keeps its place among the listeners", () => {
  const seen = [];
  const a = (e) => { seen.push("a"); e.preventDefault(); };
  addEventListener("error", a);
  onerror = () => { seen.push("h"); return true; };
  reportError(1);
  onerror = () => { seen.push("h2"); return true; };
  reportError(1);
  removeEventListener("error", a);
  onerror = null;
  assert.deepEqual(seen.sort(), ["a", "a", "h", "h2"]);
});

test("errors of timers and microtasks come to onerror", async () => {
  const seen = [];
  onerror = (message) => { seen.push(message); return true; };
  setTimeout(() => { throw new TypeError("timer"); }, 1);
  queueMicrotask(() => { throw "text"; });
  await sleep(5);
  onerror = null;
  assert.deepEqual(seen.sort(), ["TypeError: timer", "text"]);
});

test("onunhandledrejection", async () => {
  const seen = [];
  onunhandledrejection = (e) => { seen.push(e instanceof PromiseRejectionEvent, e.reason, e.promise === promise, e.cancelable); return false; };
  const promise = Promise.reject("why");
  await sleep(3);
  onunhandledrejection = null;
  assert.deepEqual(seen, [true, "why", true, true]);
});

test("onrejectionhandled", async () => {
  const seen = [];
  onunhandledrejection = () => false;
  onrejectionhandled = (e) => seen.push(e.type, e.promise === promise, e.reason, e.cancelable, e.isTrusted);
  const promise = Promise.reject("late");
  await sleep(3);
  assert.deepEqual(seen, []);
  promise.catch(() => {});
  assert.deepEqual(seen, [], "in a task of its own");
  await sleep(3);
  onunhandledrejection = onrejectionhandled = null;
  assert.deepEqual(seen, ["rejectionhandled", true, "late", false, true]);
});
