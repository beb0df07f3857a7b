// node/events.js is node:events: EventEmitter and the functions around it.

"use strict";

const {
  ArrayIsArray, ArrayPrototypePush, ArrayPrototypeSlice, ArrayPrototypeUnshift, Boolean, Error, ObjectDefineProperty,
  ObjectGetPrototypeOf, PromisePrototypeThen, ReflectApply, ReflectOwnKeys, Symbol, SymbolPrototypeToString,
  ErrorPrototype,
} = primordials;
const { builtin, checks, coded, put, wrongType } = internal.node;

const kCapture = Symbol("kCapture");
const kErrorMonitor = Symbol("events.errorMonitor");
const kRejection = primordials.SymbolFor("nodejs.rejection");

let defaultMaxListeners = 10;

function EventEmitter(options) {
  ReflectApply(EventEmitter.init, this, [options]);
}

const { prototype } = EventEmitter;
put(prototype, { _events: undefined, _eventsCount: 0, _maxListeners: undefined, [kCapture]: false });

const statics = {
  init(options) {
    if (this._events === undefined || this._events === ObjectGetPrototypeOf(this)._events) {
      this._events = { __proto__: null };
      this._eventsCount = 0;
    }
    this._maxListeners ||= undefined;
    if (options?.captureRejections) {
      checks.boolean(options.captureRejections, "options.captureRejections");
      this[kCapture] = Boolean(options.captureRejections);
    } else this[kCapture] = prototype[kCapture];
  },
};

function checkListener(listener) { checks.function(listener, "listener"); }

function isError(value) {
  for (let p = value; p !== null && (typeof p === "object" || typeof p === "function"); p = ObjectGetPrototypeOf(p)) {
    if (p === ErrorPrototype) return true;
  }
  return internal.isError(value);
}

function unhandled(args) {
  const error = args.length > 0 ? args[0] : undefined;
  if (isError(error)) throw error;
  let text;
  try {
    text = internal.inspect(error);
  } catch {
    text = error;
  }
  const wrapped = coded(Error, "ERR_UNHANDLED_ERROR", `Unhandled error. (${text})`);
  wrapped.context = error;
  throw wrapped;
}

// catchRejection passes the rejection of what an async listener returned to the emitter that captures it.
function catchRejection(emitter, result, type, args) {
  if (!emitter[kCapture] || result === undefined || result === null) return;
  try {
    const { then } = result;
    if (typeof then !== "function") return;
    ReflectApply(then, result, [undefined, (error) => {
      internal.queueMicrotask(() => rejected(emitter, error, type, args));
    }]);
  } catch (error) {
    emitter.emit("error", error);
  }
}

function rejected(emitter, error, type, args) {
  if (typeof emitter[kRejection] === "function") {
    emitter[kRejection](error, type, ...args);
    return;
  }
  const before = emitter[kCapture];
  try {
    emitter[kCapture] = false;
    emitter.emit("error", error);
  } finally {
    emitter[kCapture] = before;
  }
}

function nameOf(type) { return typeof type === "symbol" ? SymbolPrototypeToString(type) : `${type}`; }

function warnOfLeak(target, type, list) {
  list.warned = true;
  const max = limitOf(target);
  const warning = new Error(`Possible EventEmitter memory leak detected. ${list.length} ${nameOf(type)} listeners added to ` +
    `${internal.inspect(target, -1)}. MaxListeners is ${max}. Use emitter.setMaxListeners() to increase limit`);
  put(warning, { name: "MaxListenersExceededWarning", emitter: target, type, count: list.length });
  builtin("process").emitWarning(warning);
}

function limitOf(target) { return target._maxListeners === undefined ? defaultMaxListeners : target._maxListeners; }

function add(target, type, listener, first) {
  checkListener(listener);
  let events = target._events;
  if (events === undefined) {
    events = target._events = { __proto__: null };
    target._eventsCount = 0;
  } else if (events.newListener !== undefined) {
    target.emit("newListener", type, listener.listener ?? listener);
    events = target._events; // a listener may have changed it
  }
  const there = events[type];
  if (there === undefined) {
    events[type] = listener;
    ++target._eventsCount;
    return target;
  }
  if (typeof there === "function") events[type] = first ? [listener, there] : [there, listener];
  else if (first) ArrayPrototypeUnshift(there, listener);
  else ArrayPrototypePush(there, listener);
  const list = events[type];
  const max = limitOf(target);
  if (max > 0 && list.length > max && !list.warned) warnOfLeak(target, type, list);
  return target;
}

// onceOf makes the listener that is removed when it is called.
function onceOf(target, type, listener) {
  let fired = false;
  const wrapped = (...args) => {
    if (fired) return undefined;
    fired = true;
    target.removeListener(type, wrapped);
    return ReflectApply(listener, target, args);
  };
  wrapped.listener = listener;
  return wrapped;
}

function forget(emitter, type) {
  if (--emitter._eventsCount === 0) emitter._events = { __proto__: null };
  else delete emitter._events[type];
}

function listenersOf(target, type, unwrap) {
  const there = target._events?.[type];
  if (there === undefined) return [];
  if (typeof there === "function") return [unwrap ? there.listener ?? there : there];
  const out = ArrayPrototypeSlice(there);
  if (unwrap) for (let i = 0; i < out.length; i++) out[i] = out[i].listener ?? out[i];
  return out;
}

function countOf(emitter, type, listener) {
  const there = emitter._events?.[type];
  if (there === undefined) return 0;
  if (listener === null || listener === undefined) return typeof there === "function" ? 1 : there.length;
  if (typeof there === "function") return there === listener || there.listener === listener ? 1 : 0;
  let n = 0;
  for (let i = 0; i < there.length; i++) if (there[i] === listener || there[i].listener === listener) n++;
  return n;
}

const methods = {
  setMaxListeners(n) {
    checks.number(n, "setMaxListeners", 0);
    this._maxListeners = n;
    return this;
  },
  getMaxListeners() { return limitOf(this); },
  emit(type, ...args) {
    const events = this._events;
    if (type === "error") {
      if (events?.[kErrorMonitor] !== undefined) this.emit(kErrorMonitor, ...args);
      if (events?.error === undefined) unhandled(args);
    } else if (events === undefined) return false;
    const handler = events[type];
    if (handler === undefined) return false;
    if (typeof handler === "function") catchRejection(this, ReflectApply(handler, this, args), type, args);
    else {
      const list = ArrayPrototypeSlice(handler);
      for (let i = 0; i < list.length; i++) catchRejection(this, ReflectApply(list[i], this, args), type, args);
    }
    return true;
  },
  addListener(type, listener) { return add(this, type, listener, false); },
  prependListener(type, listener) { return add(this, type, listener, true); },
  once(type, listener) {
    checkListener(listener);
    this.on(type, onceOf(this, type, listener));
    return this;
  },
  prependOnceListener(type, listener) {
    checkListener(listener);
    this.prependListener(type, onceOf(this, type, listener));
    return this;
  },
  removeListener(type, listener) {
    checkListener(listener);
    const list = this._events?.[type];
    if (list === undefined) return this;
    if (list === listener || list.listener === listener) {
      forget(this, type);
      if (this._events.removeListener !== undefined) this.emit("removeListener", type, list.listener ?? listener);
      return this;
    }
    if (typeof list === "function") return this;
    let at = list.length - 1;
    while (at >= 0 && list[at] !== listener && list[at].listener !== listener) at--;
    if (at < 0) return this;
    for (let i = at; i + 1 < list.length; i++) list[i] = list[i + 1];
    list.length--;
    if (list.length === 1) this._events[type] = list[0];
    if (this._events.removeListener !== undefined) this.emit("removeListener", type, listener);
    return this;
  },
  removeAllListeners(type) {
    const events = this._events;
    if (events === undefined) return this;
    if (events.removeListener === undefined) {
      if (arguments.length === 0) {
        this._events = { __proto__: null };
        this._eventsCount = 0;
      } else if (events[type] !== undefined) forget(this, type);
      return this;
    }
    if (arguments.length === 0) {
      const keys = ReflectOwnKeys(events);
      for (let i = 0; i < keys.length; i++) if (keys[i] !== "removeListener") this.removeAllListeners(keys[i]);
      this.removeAllListeners("removeListener");
      this._events = { __proto__: null };
      this._eventsCount = 0;
      return this;
    }
    const list = listenersOf(this, type, false);
    for (let i = list.length - 1; i >= 0; i--) this.removeListener(type, list[i]);
    return this;
  },
  listeners(type) { return listenersOf(this, type, true); },
  rawListeners(type) { return listenersOf(this, type, false); },
  listenerCount(type, listener) { return countOf(this, type, listener); },
  eventNames() { return this._eventsCount > 0 ? ReflectOwnKeys(this._events) : []; },
};
put(prototype, methods);
put(prototype, { on: methods.addListener, off: methods.removeListener });

put(EventEmitter, statics);
ObjectDefineProperty(EventEmitter, "defaultMaxListeners", {
  __proto__: null,
  enumerable: true,
  configurable: false,
  get: () => defaultMaxListeners,
  set: (n) => {
    checks.number(n, "defaultMaxListeners", 0);
    defaultMaxListeners = n;
  },
});
ObjectDefineProperty(EventEmitter, "captureRejections", {
  __proto__: null,
  enumerable: true,
  configurable: false,
  get: () => prototype[kCapture],
  set: (value) => {
    checks.boolean(value, "EventEmitter.captureRejections");
    ObjectDefineProperty(prototype, kCapture,
      { __proto__: null, value, writable: true, enumerable: false, configurable: true });
  },
});

internal.node.emitter = {
  __proto__: null, EventEmitter, kErrorMonitor, kRejection, limitOf, listenersOf,
  isEmitter: (value) => typeof value?.on === "function" || typeof value?.addListener === "function",
  isTarget: (value) => typeof value?.addEventListener === "function",
  setDefault: (n) => { defaultMaxListeners = n; },
  wrongEmitter: (value) => wrongType("emitter", "an instance of EventEmitter", value),
  then: PromisePrototypeThen, isArray: ArrayIsArray,
};
