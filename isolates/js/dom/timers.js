// dom/timers.js is setTimeout, setInterval and their clear functions. Go keeps the clock. This file keeps the
// callbacks by id. Ids never restart in a context, so a late call for a past event finds no timer.

"use strict";

const {
  Map, MapPrototypeDelete, MapPrototypeGet, MapPrototypeSet,
  ObjectDefineProperty, Promise,
  PromisePrototypeThen, ReflectApply, TypeError, globalThis, sealedProto,
} = primordials;
const { checkGlobal, defineOperation, requireArguments, sendOps, toCallback, toLong } = internal;
const { send } = host;

const NESTING_LIMIT = 5;
const NESTED_MINIMUM = 4;

class Timer {
  callback;
  args;
  delay;
  repeat;
  level;
  run; // the run it belongs to
  frame;
  constructor(callback, args, delay, repeat, level) {
    this.callback = callback;
    this.args = args;
    this.delay = delay;
    this.repeat = repeat;
    this.level = level;
    this.run = internal.acting();
    this.frame = internal.inheritFrame();
  }
}
sealedProto(Timer);

const timers = new Map();
let lastId = 0;
let level = 0;

function start(handler, timeout, args, repeat, what) {
  if (typeof handler !== "function") {
    throw new TypeError(`${what}: the handler is not a function; code as a string is not run`);
  }
  let delay = toLong(timeout);
  if (delay < 0) delay = 0;
  const nesting = level + 1;
  if (nesting > NESTING_LIMIT && delay < NESTED_MINIMUM) delay = NESTED_MINIMUM;
  return add(new Timer(handler, args, delay, repeat, nesting));
}

// add starts a timer, unless its event is over. It counts the id in both cases.
function add(timer) {
  const id = ++lastId;
  if (timer.run !== null && timer.run.over) return id;
  MapPrototypeSet(timers, id, timer);
  internal.speakFor(timer.run);
  send(sendOps.TIMER, id, timer.delay);
  return id;
}

// startTimer is for the runtime's own timers. It does not clamp the delay and does not report errors of handler code.
internal.startTimer = (delay, callback) => add(new Timer(callback, [], delay, false, 0));

// startTimerFor is for a timer that belongs to another event than the acting one.
internal.startTimerFor = (run, frame, delay, callback) => {
  const timer = new Timer(callback, [], delay, false, 0);
  timer.run = run;
  timer.frame = frame;
  return add(timer);
};

internal.clearTimer = clear;

function clear(value) {
  const id = toLong(value);
  const timer = MapPrototypeGet(timers, id);
  if (timer === undefined) return;
  MapPrototypeDelete(timers, id);
  internal.speakFor(timer.run);
  send(sendOps.CLEAR, id);
}

// fireTimer runs one timer that is due. It reports what the callback throws, as HTML's "run steps after a timeout"
// does.
function fireTimer(id) {
  const timer = MapPrototypeGet(timers, id);
  if (timer === undefined) return;
  if (!timer.repeat) MapPrototypeDelete(timers, id);
  level = timer.level;
  internal.callIn(timer.frame, timer.callback, globalThis, timer.args);
  level = 0;
  if (timer.repeat && MapPrototypeGet(timers, id) === timer) again(id, timer);
}

function again(id, timer) {
  if (timer.run !== null && timer.run.over) {
    MapPrototypeDelete(timers, id);
    return;
  }
  timer.level++;
  if (timer.level > NESTING_LIMIT && timer.delay < NESTED_MINIMUM) timer.delay = NESTED_MINIMUM;
  internal.speakFor(timer.run);
  send(sendOps.TIMER, id, timer.delay);
}

const runMicrotasks = typeof host.runMicrotasks === "function" ? host.runMicrotasks : undefined;

internal.fireTimers = (ids) => {
  for (let i = 0; i < ids.length; i++) {
    fireTimer(ids[i]);
    if (runMicrotasks !== undefined && i + 1 < ids.length) runMicrotasks();
  }
};

// Go has already removed its part of the timers of a past event.
internal.onForget((run) => {
  internal.forgetIn(timers, run);
  level = 0;
});

// ---- setImmediate, of Node and Workers ----

let idOf;

class Immediate {
  #id;
  constructor(token = undefined, id) {
    if (token !== internal.TOKEN) throw internal.illegalConstructor();
    this.#id = id;
  }
  static {
    idOf = (value) => (internal.isObject(value) && #id in value ? value.#id : undefined);
  }
  ref() { return this; }
  unref() { return this; }
  hasRef() { return idOf(this) !== undefined; }
}
internal.defineInterface(Immediate, "Immediate", true);

const operations = {
  setImmediate(callback, ...args) {
    checkGlobal(this);
    requireArguments(arguments.length, 1, "setImmediate");
    toCallback(callback, "setImmediate: the callback");
    return new Immediate(internal.TOKEN, add(new Timer(callback, args, 0, false, 0)));
  },
  clearImmediate(immediate = undefined) {
    checkGlobal(this);
    if (immediate === undefined || immediate === null) return;
    const id = idOf(immediate);
    if (id === undefined) throw new TypeError("clearImmediate: the argument is not what setImmediate returned");
    clear(id);
  },
  setTimeout(handler, timeout = 0, ...args) {
    checkGlobal(this);
    requireArguments(arguments.length, 1, "setTimeout");
    return start(handler, timeout, args, false, "setTimeout");
  },
  setInterval(handler, timeout = 0, ...args) {
    checkGlobal(this);
    requireArguments(arguments.length, 1, "setInterval");
    return start(handler, timeout, args, true, "setInterval");
  },
  clearTimeout(id = 0) {
    checkGlobal(this);
    clear(id);
  },
  clearInterval(id = 0) {
    checkGlobal(this);
    clear(id);
  },
  queueMicrotask(callback) {
    checkGlobal(this);
    requireArguments(arguments.length, 1, "queueMicrotask");
    toCallback(callback, "queueMicrotask: the callback");
    queue(callback);
  },
  reportError(error) {
    checkGlobal(this);
    requireArguments(arguments.length, 1, "reportError");
    internal.reportException(error);
  },
};

// ready is the runtime's own promise. So its reactions are microtasks that handler code cannot intercept.
const ready = new Promise((resolve) => resolve());
ObjectDefineProperty(ready, "constructor", { __proto__: null, value: undefined });

function queue(callback) {
  PromisePrototypeThen(ready, () => {
    try {
      ReflectApply(callback, undefined, []);
    } catch (error) {
      internal.reportException(error);
    }
  });
}
internal.queueMicrotask = queue;

defineOperation("setTimeout", operations.setTimeout);
defineOperation("setInterval", operations.setInterval);
defineOperation("clearTimeout", operations.clearTimeout);
defineOperation("clearInterval", operations.clearInterval);
defineOperation("setImmediate", operations.setImmediate);
defineOperation("clearImmediate", operations.clearImmediate);
defineOperation("queueMicrotask", operations.queueMicrotask);
defineOperation("reportError", operations.reportError);
