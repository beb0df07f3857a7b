// node/events_static.js has what node:events exports beside EventEmitter.

"use strict";

const {
  AsyncIteratorPrototype, ObjectSetPrototypeOf, Promise, PromiseReject, PromiseResolve, Queue, ReflectApply, Symbol,
  SymbolAsyncIterator,
} = primordials;
const { AbortError, builtin, checks, later, put, wrongType } = internal.node;
const {
  EventEmitter, isEmitter, isTarget, kErrorMonitor, kRejection, limitOf, listenersOf, setDefault, wrongEmitter,
} = internal.node.emitter;

const dispose = Symbol.dispose ?? primordials.SymbolFor("Symbol.dispose");

function listen(emitter, name, listener, once = false) {
  if (typeof emitter.on === "function") {
    if (once) emitter.once(name, listener);
    else emitter.on(name, listener);
  } else if (isTarget(emitter)) emitter.addEventListener(name, listener, { __proto__: null, once });
  else throw wrongEmitter(emitter);
}

function unlisten(emitter, name, listener) {
  if (typeof emitter.removeListener === "function") emitter.removeListener(name, listener);
  else if (isTarget(emitter)) emitter.removeEventListener(name, listener);
  else throw wrongEmitter(emitter);
}

const aborted = (signal) => new AbortError(undefined, { __proto__: null, cause: signal.reason });

function once(emitter, name, options = {}) {
  try {
    checks.object(options, "options");
    checks.signal(options.signal, "options.signal");
    if (options.signal?.aborted) throw aborted(options.signal);
  } catch (error) {
    return PromiseReject(error);
  }
  const { signal } = options;
  return new Promise((resolve, reject) => {
    const onError = (error) => {
      unlisten(emitter, name, onEvent);
      if (signal !== undefined) unlisten(signal, "abort", onAbort);
      reject(error);
    };
    const onEvent = (...args) => {
      if (typeof emitter.removeListener === "function") emitter.removeListener("error", onError);
      if (signal !== undefined) unlisten(signal, "abort", onAbort);
      resolve(args);
    };
    const onAbort = () => {
      unlisten(emitter, name, onEvent);
      unlisten(emitter, "error", onError);
      reject(aborted(signal));
    };
    listen(emitter, name, onEvent, true);
    if (name !== "error" && typeof emitter.once === "function") emitter.once("error", onError);
    if (signal !== undefined) listen(signal, "abort", onAbort, true);
  });
}

class Iteration {
  emitter;
  name;
  events = new Queue();
  waiting = new Queue(); // {resolve, reject} of next()
  error = null;
  finished = false;
  paused = false;
  low;
  high;
  undo = new Queue();
  constructor(emitter, name, low, high) {
    this.emitter = emitter;
    this.name = name;
    this.low = low;
    this.high = high;
  }
  on(emitter, name, listener) {
    listen(emitter, name, listener);
    this.undo.push(() => unlisten(emitter, name, listener));
  }
  next() {
    if (this.events.length > 0) {
      const value = this.events.shift();
      if (this.paused && this.events.length < this.low) {
        this.emitter.resume();
        this.paused = false;
      }
      return PromiseResolve({ value, done: false });
    }
    if (this.error !== null) {
      const rejection = PromiseReject(this.error);
      this.error = null;
      return rejection;
    }
    if (this.finished) return this.close();
    return new Promise((resolve, reject) => { this.waiting.push({ __proto__: null, resolve, reject }); });
  }
  take(args) {
    const first = this.waiting.shift();
    if (first !== undefined) first.resolve({ value: args, done: false });
    else {
      this.events.push(args);
      if (!this.paused && this.events.length > this.high && typeof this.emitter.pause === "function") {
        this.paused = true;
        this.emitter.pause();
      }
    }
  }
  fail(error) {
    const first = this.waiting.shift();
    if (first !== undefined) first.reject(error);
    else this.error = error;
    this.close();
  }
  close() {
    for (let f = this.undo.shift(); f !== undefined; f = this.undo.shift()) ReflectApply(f, undefined, []);
    this.finished = true;
    const end = { value: undefined, done: true };
    for (let w = this.waiting.shift(); w !== undefined; w = this.waiting.shift()) w.resolve(end);
    return PromiseResolve(end);
  }
}
primordials.sealedProto(Iteration);

function on(emitter, name, options = {}) {
  checks.object(options, "options");
  const { close, signal } = options;
  checks.signal(signal, "options.signal");
  if (signal?.aborted) throw aborted(signal);
  const high = options.highWaterMark ?? options.highWatermark ?? 9007199254740991;
  const low = options.lowWaterMark ?? options.lowWatermark ?? 1;
  checks.integer(high, "options.highWaterMark", 1);
  checks.integer(low, "options.lowWaterMark", 1);
  const it = new Iteration(emitter, name, low, high);
  const onError = (error) => it.fail(error);
  it.on(emitter, name, (...args) => it.take(args));
  if (name !== "error" && typeof emitter.on === "function") it.on(emitter, "error", onError);
  for (let i = 0; i < (close?.length ?? 0); i++) it.on(emitter, close[i], () => it.close());
  if (signal !== undefined) it.on(signal, "abort", () => onError(aborted(signal)));
  const iterator = {
    next() { return it.next(); },
    return() { return it.close(); },
    throw(error) {
      if (!internal.isError(error)) throw wrongType("EventEmitter.AsyncIterator", "an instance of Error", error);
      it.fail(error);
    },
    [SymbolAsyncIterator]() { return this; },
  };
  ObjectSetPrototypeOf(iterator, AsyncIteratorPrototype);
  return iterator;
}

function addAbortListener(signal, listener) {
  if (signal === undefined) throw wrongType("signal", "an instance of AbortSignal", signal);
  checks.signal(signal, "signal");
  checks.function(listener, "listener");
  let remove = () => {};
  if (signal.aborted) internal.queueMicrotask(() => ReflectApply(listener, undefined, []));
  else {
    signal.addEventListener("abort", listener, { __proto__: null, once: true });
    remove = () => signal.removeEventListener("abort", listener);
  }
  return { [dispose]() { remove(); } };
}

const more = {
  once, on, addAbortListener,
  getEventListeners(emitter, type) {
    if (typeof emitter?.listeners === "function") return emitter.listeners(type);
    if (internal.isEventTarget(emitter)) return internal.eventListeners(emitter, `${type}`);
    throw wrongType("emitter", "an instance of EventEmitter or EventTarget", emitter);
  },
  getMaxListeners(emitter) {
    if (typeof emitter?.getMaxListeners === "function") return limitOf(emitter);
    if (internal.isEventTarget(emitter)) return EventEmitter.defaultMaxListeners;
    throw wrongType("emitter", "an instance of EventEmitter or EventTarget", emitter);
  },
  setMaxListeners(n = EventEmitter.defaultMaxListeners, ...targets) {
    checks.number(n, "setMaxListeners", 0);
    if (targets.length === 0) setDefault(n);
    for (let i = 0; i < targets.length; i++) {
      if (internal.isEventTarget(targets[i])) continue;
      if (typeof targets[i]?.setMaxListeners !== "function") {
        throw wrongType("eventTargets", "an instance of EventEmitter or EventTarget", targets[i]);
      }
      targets[i].setMaxListeners(n);
    }
  },
  listenerCount(emitter, type) {
    if (typeof emitter?.listenerCount === "function") return emitter.listenerCount(type);
    if (internal.isEventTarget(emitter)) return internal.eventListeners(emitter, `${type}`).length;
    return listenersOf(emitter, type, false).length;
  },
};
put(EventEmitter, more);
put(EventEmitter, {
  usingDomains: false, captureRejectionSymbol: kRejection, errorMonitor: kErrorMonitor, EventEmitter,
});

function makeAsyncEmitter() {
  const { AsyncResource } = builtin("async_hooks");
  const resources = new primordials.WeakMap();
  const resourceOf = (emitter) => primordials.WeakMapPrototypeGet(resources, emitter);
  class EventEmitterReferencingAsyncResource extends AsyncResource {
    #emitter;
    constructor(emitter, type, options) {
      super(type, options);
      this.#emitter = emitter;
    }
    get eventEmitter() { return this.#emitter; }
  }
  return class EventEmitterAsyncResource extends EventEmitter {
    constructor(options = undefined) {
      let name = new.target.name;
      if (typeof options === "string") {
        name = options;
        options = undefined;
      } else if (options?.name !== undefined) {
        ({ name } = options);
      }
      checks.string(name, "options.name");
      super(options);
      primordials.WeakMapPrototypeSet(resources, this, new EventEmitterReferencingAsyncResource(this, name, options));
    }
    emit(event, ...args) {
      return resourceOf(this).runInAsyncScope(super.emit, this, event, ...args);
    }
    emitDestroy() { resourceOf(this).emitDestroy(); }
    get asyncId() { return resourceOf(this).asyncId(); }
    get triggerAsyncId() { return resourceOf(this).triggerAsyncId(); }
    get asyncResource() { return resourceOf(this); }
  };
}
later(EventEmitter, "EventEmitterAsyncResource", makeAsyncEmitter);

internal.nodeModules.events = EventEmitter;
