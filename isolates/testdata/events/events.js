// Event, EventTarget, CustomEvent, ErrorEvent, PromiseRejectionEvent and the global target.

test("Event: attributes and defaults", () => {
  const e = new Event("x");
  assert.equal(e.type, "x");
  assert.deepEqual([e.bubbles, e.cancelable, e.composed, e.defaultPrevented, e.isTrusted], [false, false, false, false, false]);
  assert.deepEqual([e.target, e.srcElement, e.currentTarget, e.eventPhase], [null, null, null, 0]);
  assert.deepEqual(e.composedPath(), []);
  assert.equal(typeof e.timeStamp, "number");
  assert.deepEqual([Event.NONE, Event.CAPTURING_PHASE, Event.AT_TARGET, Event.BUBBLING_PHASE], [0, 1, 2, 3]);
  assert.equal(e.AT_TARGET, 2);
  assert.deepEqual([new Event("x", { bubbles: 1, cancelable: "yes", composed: {} }).bubbles, new Event("", null).type], [true, ""]);
  assert.throws(() => new Event(), TypeError);
  assert.throws(() => new Event("x", 1), TypeError);
  assert.throws(() => new Event(Symbol()), TypeError);
  assert.equal(new Event(null).type, "null");
});

test("Event: isTrusted cannot be forged", () => {
  const e = new Event("x");
  const d = Object.getOwnPropertyDescriptor(e, "isTrusted");
  assert.equal(d.configurable, false);
  assert.equal(d.set, undefined);
  assert.equal(d.get, Object.getOwnPropertyDescriptor(new Event("y"), "isTrusted").get);
  assert.throws(() => Object.defineProperty(e, "isTrusted", { value: true }), TypeError);
});

test("preventDefault needs cancelable", () => {
  const no = new Event("x");
  no.preventDefault();
  assert.equal(no.defaultPrevented, false);
  const yes = new Event("x", { cancelable: true });
  yes.preventDefault();
  assert.equal(yes.defaultPrevented, true);
  assert.equal(yes.returnValue, false);
  const legacy = new Event("x", { cancelable: true });
  legacy.returnValue = false;
  assert.equal(legacy.defaultPrevented, true);
  legacy.returnValue = true;
  assert.equal(legacy.defaultPrevented, true);
});

test("initEvent", () => {
  const e = new Event("x");
  e.initEvent("y", true, true);
  assert.deepEqual([e.type, e.bubbles, e.cancelable], ["y", true, true]);
  e.preventDefault();
  e.initEvent("z");
  assert.deepEqual([e.type, e.bubbles, e.defaultPrevented], ["z", false, false]);
});

test("dispatch: order, this, target, phases", () => {
  const target = new EventTarget();
  const seen = [];
  target.addEventListener("x", function (e) { seen.push(["bubble", this === target, e.target === target, e.currentTarget === target, e.eventPhase]); });
  target.addEventListener("x", () => seen.push(["capture"]), true);
  const e = new Event("x");
  assert.equal(target.dispatchEvent(e), true);
  assert.deepEqual(seen, [["capture"], ["bubble", true, true, true, 2]]);
  assert.deepEqual([e.target, e.currentTarget, e.eventPhase], [target, null, 0]);
  assert.equal(target.dispatchEvent(e), true);
  assert.equal(seen.length, 4);
});

test("dispatch: the same listener counts once per capture flag", () => {
  const target = new EventTarget();
  let n = 0;
  const fn = () => n++;
  target.addEventListener("x", fn);
  target.addEventListener("x", fn, { passive: true });
  target.addEventListener("x", fn, true);
  target.dispatchEvent(new Event("x"));
  assert.equal(n, 2);
  target.removeEventListener("x", fn);
  target.dispatchEvent(new Event("x"));
  assert.equal(n, 3);
  target.removeEventListener("x", fn, { capture: true });
  target.dispatchEvent(new Event("x"));
  assert.equal(n, 3);
});

test("once, passive, null and object listeners", () => {
  const target = new EventTarget();
  let n = 0;
  target.addEventListener("x", () => { n++; target.dispatchEvent(new Event("x")); }, { once: true });
  target.dispatchEvent(new Event("x"));
  assert.equal(n, 1);
  target.addEventListener("p", (e) => e.preventDefault(), { passive: true });
  assert.equal(target.dispatchEvent(new Event("p", { cancelable: true })), true);
  target.addEventListener("n", null);
  target.removeEventListener("n", null);
  const object = { handleEvent(e) { this.got = e.type; } };
  target.addEventListener("o", object);
  target.dispatchEvent(new Event("o"));
  assert.equal(object.got, "o");
  assert.throws(() => target.addEventListener("x", 1), TypeError);
  assert.throws(() => target.addEventListener("x"), TypeError);
});

test("handleEvent is looked up at each dispatch", () => {
  const target = new EventTarget();
  let looked = 0;
  const object = { get handleEvent() { looked++; return () => {}; } };
  target.addEventListener("x", object);
  target.dispatchEvent(new Event("x"));
  target.dispatchEvent(new Event("x"));
  assert.equal(looked, 2);
});

test("listeners added in dispatch do not run, removed ones do not either", () => {
  const target = new EventTarget();
  const seen = [];
  const third = () => seen.push(3);
  target.addEventListener("x", () => {
    seen.push(1);
    target.addEventListener("x", () => seen.push("late"));
    target.removeEventListener("x", third);
  });
  target.addEventListener("x", () => seen.push(2));
  target.addEventListener("x", third);
  target.dispatchEvent(new Event("x"));
  assert.deepEqual(seen, [1, 2]);
});

test("a listener that removes itself and its neighbours", () => {
  const target = new EventTarget();
  const seen = [];
  const a = () => { seen.push("a"); target.removeEventListener("x", a); target.removeEventListener("x", b); };
  const b = () => seen.push("b");
  const c = () => seen.push("c");
  for (const fn of [a, b, c]) target.addEventListener("x", fn);
  target.dispatchEvent(new Event("x"));
  assert.deepEqual(seen, ["a", "c"]);
});

test("stopImmediatePropagation and stopPropagation", () => {
  const target = new EventTarget();
  const seen = [];
  target.addEventListener("x", (e) => { seen.push(1); e.stopImmediatePropagation(); });
  target.addEventListener("x", () => seen.push(2));
  target.dispatchEvent(new Event("x"));
  assert.deepEqual(seen, [1]);
  const other = new EventTarget();
  other.addEventListener("x", (e) => { seen.push("c"); e.stopPropagation(); assert.equal(e.cancelBubble, true); }, true);
  other.addEventListener("x", () => seen.push("b"));
  other.dispatchEvent(new Event("x"));
  assert.deepEqual(seen, [1, "c"]);
});

test("dispatching twice at once is refused", () => {
  const target = new EventTarget();
  const e = new Event("x");
  let error;
  target.addEventListener("x", () => { try { target.dispatchEvent(e); } catch (caught) { error = caught; } });
  target.dispatchEvent(e);
  assert.equal(error.name, "InvalidStateError");
  assert.throws(() => target.dispatchEvent({}), TypeError);
  assert.throws(() => target.dispatchEvent(), TypeError);
});

test("exceptions of listeners are reported, not thrown", () => {
  const target = new EventTarget();
  const seen = [];
  const onerror = (e) => { seen.push(e.error.message, e.message); e.preventDefault(); };
  addEventListener("error", onerror);
  target.addEventListener("x", () => { throw new Error("expected"); });
  target.addEventListener("x", () => seen.push("second"));
  assert.equal(target.dispatchEvent(new Event("x")), true);
  removeEventListener("error", onerror);
  assert.deepEqual(seen, ["expected", "Error: expected", "second"]);
});

test("a signal removes its listener", () => {
  const target = new EventTarget();
  const c = new AbortController();
  let n = 0;
  target.addEventListener("x", () => n++, { signal: c.signal });
  target.dispatchEvent(new Event("x"));
  c.abort();
  target.dispatchEvent(new Event("x"));
  assert.equal(n, 1);
  target.addEventListener("x", () => n++, { signal: c.signal });
  target.dispatchEvent(new Event("x"));
  assert.equal(n, 1);
  assert.throws(() => target.addEventListener("x", () => {}, { signal: {} }), TypeError);
  assert.throws(() => target.addEventListener("x", () => {}, { signal: null }), TypeError);
});

test("the global object is a target of its own", () => {
  let got;
  const fn = function (e) { got = [this === globalThis, e.target === globalThis]; };
  addEventListener("mine", fn);
  assert.equal(dispatchEvent(new Event("mine")), true);
  removeEventListener("mine", fn);
  assert.deepEqual(got, [true, true]);
  got = null;
  dispatchEvent(new Event("mine"));
  assert.equal(got, null);
});

test("subclasses", () => {
  class Emitter extends EventTarget { constructor() { super(); this.n = 0; } }
  const e = new Emitter();
  e.addEventListener("x", function () { this.n++; });
  e.dispatchEvent(new Event("x"));
  assert.equal(e.n, 1);
  class Mine extends Event { constructor() { super("mine"); } }
  assert.equal(new Mine().type, "mine");
  assert.throws(() => EventTarget.prototype.addEventListener.call({}, "x", () => {}), TypeError);
});

test("CustomEvent, ErrorEvent, PromiseRejectionEvent", () => {
  assert.equal(new CustomEvent("x").detail, null);
  assert.equal(new CustomEvent("x", { detail: 0 }).detail, 0);
  assert.equal(new CustomEvent("x", { detail: undefined }).detail, null);
  const c = new CustomEvent("x");
  c.initCustomEvent("y", true, true, 5);
  assert.deepEqual([c.type, c.bubbles, c.detail], ["y", true, 5]);
  const e = new ErrorEvent("error", { message: "m", filename: "f", lineno: 1, colno: 2, error: 3 });
  assert.deepEqual([e.message, e.filename, e.lineno, e.colno, e.error], ["m", "f", 1, 2, 3]);
  assert.deepEqual([new ErrorEvent("e").message, new ErrorEvent("e").lineno, new ErrorEvent("e").error], ["", 0, undefined]);
  const p = Promise.resolve();
  assert.equal(new PromiseRejectionEvent("r", { promise: p, reason: 1 }).promise, p);
  assert.throws(() => new PromiseRejectionEvent("r", {}), TypeError);
  assert.throws(() => new PromiseRejectionEvent("r"), TypeError);
  for (const promise of [null, 5, "x", undefined]) assert.throws(() => new PromiseRejectionEvent("r", { promise }), TypeError);
  const thenable = { then() {} };
  assert.equal(new PromiseRejectionEvent("r", { promise: thenable }).promise, thenable);
  assert.ok(e instanceof Event && c instanceof Event);
});

test("reportError dispatches to the global object", () => {
  let got;
  const fn = (e) => { got = e; e.preventDefault(); };
  addEventListener("error", fn);
  const error = new RangeError("r");
  reportError(error);
  removeEventListener("error", fn);
  assert.equal(got.error, error);
  assert.equal(got.isTrusted, true);
  assert.equal(got.message, "RangeError: r");
  assert.ok(got.cancelable);
  assert.throws(() => reportError(), TypeError);
});

test("the global object is an EventTarget", () => {
  assert.ok(globalThis instanceof EventTarget && self instanceof EventTarget);
  assert.ok(EventTarget.prototype.isPrototypeOf(globalThis));
  assert.equal(Object.prototype.toString.call(globalThis), "[object global]");
  const seen = [];
  const listener = (event) => { seen.push(event.type, event.target === globalThis, event.currentTarget === globalThis); };
  EventTarget.prototype.addEventListener.call(globalThis, "mine", listener, { once: true });
  EventTarget.prototype.dispatchEvent.call(globalThis, new Event("mine"));
  dispatchEvent(new Event("mine"));
  assert.deepEqual(seen, ["mine", true, true]);
  assert.ok(Object.hasOwn(globalThis, "addEventListener"));
});
