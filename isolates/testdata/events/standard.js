// What web-platform-tests ask of events beyond events.js: order of conversions, flags that outlive their dispatch, places of handlers.

test("propagation that is stopped before the dispatch: no listener runs, and the next dispatch is a new one", () => {
  for (const stop of [(e) => e.stopPropagation(), (e) => { e.cancelBubble = true; }, (e) => e.stopImmediatePropagation()]) {
    const target = new EventTarget();
    const seen = [];
    target.addEventListener("x", () => seen.push("capture"), true);
    target.addEventListener("x", () => seen.push("bubble"));
    const e = new Event("x");
    stop(e);
    target.dispatchEvent(e);
    assert.deepEqual(seen, []);
    assert.equal(e.cancelBubble, false);
    target.dispatchEvent(e);
    assert.deepEqual(seen, ["capture", "bubble"]);
  }
});

test("initEvent takes a stop back", () => {
  const target = new EventTarget();
  let n = 0;
  target.addEventListener("y", () => n++);
  const e = new Event("x");
  e.stopImmediatePropagation();
  e.initEvent("y");
  target.dispatchEvent(e);
  assert.equal(n, 1);
});

test("a handler that was set to null loses its place, one that is replaced keeps it", () => {
  const c = new AbortController();
  const seen = [];
  c.signal.onabort = () => seen.push("first");
  c.signal.onabort = () => seen.push("handler");
  c.signal.addEventListener("abort", () => seen.push("listener"));
  c.abort();
  assert.deepEqual(seen, ["handler", "listener"]);

  const other = new AbortController();
  seen.length = 0;
  other.signal.onabort = () => seen.push("first");
  other.signal.addEventListener("abort", () => { seen.push("listener"); other.signal.onabort = null; });
  other.signal.onabort = null;
  other.signal.onabort = () => seen.push("handler");
  other.abort();
  assert.deepEqual(seen, ["listener"], "deactivated within the dispatch, it does not run");

  seen.length = 0;
  onerror = () => { seen.push("first"); return true; };
  const listener = (e) => { seen.push("listener"); e.preventDefault(); };
  addEventListener("error", listener);
  onerror = null;
  onerror = () => { seen.push("handler"); return true; };
  reportError(1);
  onerror = null;
  removeEventListener("error", listener);
  assert.deepEqual(seen, ["listener", "handler"]);
});

test("dictionaries are converted member by member, in order", () => {
  const log = (seen, keys, values = {}) => Object.defineProperties({}, Object.fromEntries(keys.map((key) => [key, { get() {
    seen.push(key);
    return values[key] ?? { valueOf() { seen.push(`${key} converted`); return 1; }, toString() { seen.push(`${key} converted`); return key; } };
  } }])));
  const error = [];
  new ErrorEvent("x", log(error, ["message", "lineno", "filename", "error", "colno", "composed", "cancelable", "bubbles"]));
  assert.deepEqual(error, ["bubbles", "cancelable", "composed", "colno", "colno converted", "error", "filename", "filename converted",
    "lineno", "lineno converted", "message", "message converted"]);
  const close = [];
  new CloseEvent("x", log(close, ["wasClean", "reason", "code"]));
  assert.deepEqual(close, ["code", "code converted", "reason", "reason converted", "wasClean"]);
  const listener = [];
  new EventTarget().addEventListener("x", null, log(listener, ["signal", "passive", "once", "capture"], { signal: new AbortController().signal }));
  assert.deepEqual(listener, ["capture", "once", "passive", "signal"]);
  assert.equal(new ErrorEvent("x", { filename: "\ud800" }).filename, "\ufffd");
});

test("the operations of the global object are not for other objects", () => {
  for (const name of ["addEventListener", "removeEventListener", "dispatchEvent"]) {
    assert.throws(() => globalThis[name].call({}, new Event("x"), null), TypeError, name);
    assert.throws(() => globalThis[name].call(new EventTarget(), new Event("x"), null), TypeError, name);
    globalThis[name].call(undefined, name === "dispatchEvent" ? new Event("x") : "x", null);
  }
});

test("an event's time is that of performance.now()", () => {
  const before = performance.now();
  const { timeStamp } = new Event("x");
  assert.ok(before <= timeStamp && timeStamp <= performance.now());
});

test("a listener that is an object: what goes wrong with handleEvent is reported, and the next one runs", () => {
  const target = new EventTarget();
  const seen = [];
  const thrown = { thrown: true };
  for (const listener of [{}, { handleEvent: null }, { handleEvent: 5 }, { get handleEvent() { throw thrown; } }]) target.addEventListener("x", listener);
  const callable = () => seen.push("called");
  Object.defineProperty(callable, "handleEvent", { get() { seen.push("looked up"); } });
  target.addEventListener("x", callable);
  const onError = (e) => { seen.push(e.error === thrown ? "thrown" : e.error.constructor); e.preventDefault(); };
  addEventListener("error", onError);
  target.dispatchEvent(new Event("x"));
  removeEventListener("error", onError);
  assert.deepEqual(seen.map(String), [TypeError, TypeError, TypeError, "thrown", "called"].map(String));
});
