// node/timers.js is node:timers, whose timers are objects, and node:timers/promises.

"use strict";

const { Promise, PromiseReject, ReflectApply, ReflectGet, Symbol, SymbolFor, SymbolToPrimitive, globalThis } = primordials;
const { AbortError, checks, hide, kCustomPromisify, put } = internal.node;

const dispose = Symbol.dispose ?? SymbolFor("Symbol.dispose");
const web = (name) => ReflectGet(globalThis, name);
const starts = { __proto__: null, timeout: web("setTimeout"), interval: web("setInterval"), immediate: web("setImmediate") };
const clears = { __proto__: null, timeout: web("clearTimeout"), immediate: web("clearImmediate") };

const stop = (id) => { ReflectApply(clears.timeout, undefined, [id]); };

class Timeout {
  #id;
  #again;
  #over = false;
  constructor(kind, callback, delay, args) {
    checks.function(callback, "callback");
    const run = () => {
      if (kind === "timeout") this.#over = true;
      ReflectApply(callback, this, args);
    };
    this.#again = () => { this.#id = ReflectApply(starts[kind], undefined, [run, delay]); };
    this.#again();
  }
  ref() { return this; }
  unref() { return this; }
  hasRef() { return !this.#over; }
  refresh() {
    if (this.#over) return this;
    stop(this.#id);
    this.#again();
    return this;
  }
  close() {
    this.#over = true;
    stop(this.#id);
    return this;
  }
  [dispose]() { this.close(); }
  [SymbolToPrimitive]() { return this.#id; }
}

const clear = (timer) => {
  if (timer instanceof Timeout) timer.close();
  else if (typeof timer === "number" || typeof timer === "string") stop(timer);
};

const functions = {
  setTimeout(callback, delay, ...args) { return new Timeout("timeout", callback, delay, args); },
  setInterval(callback, delay, ...args) { return new Timeout("interval", callback, delay, args); },
  setImmediate(callback, ...args) {
    checks.function(callback, "callback");
    return ReflectApply(starts.immediate, undefined, [callback, ...args]);
  },
  clearTimeout(timer) { clear(timer); },
  clearInterval(timer) { clear(timer); },
  clearImmediate(timer) { if (timer) ReflectApply(clears.immediate, undefined, [timer]); },
};

// wait is a promise of a time that a signal can end.
function wait(start, end, value, options) {
  try {
    checks.object(options, "options");
    checks.signal(options.signal, "options.signal");
    if (options.ref !== undefined) checks.boolean(options.ref, "options.ref");
  } catch (error) {
    return PromiseReject(error);
  }
  const { signal } = options;
  const aborted = () => new AbortError(undefined, { __proto__: null, cause: signal.reason });
  if (signal?.aborted) return PromiseReject(aborted());
  return new Promise((resolve, reject) => {
    const onAbort = () => {
      end(timer);
      reject(aborted());
    };
    const timer = start(() => {
      signal?.removeEventListener("abort", onAbort);
      resolve(value);
    });
    signal?.addEventListener("abort", onAbort, { __proto__: null, once: true });
  });
}

const promises = {
  setTimeout(delay, value, options = {}) {
    try {
      if (delay !== undefined) checks.number(delay, "delay");
    } catch (error) {
      return PromiseReject(error);
    }
    return wait((f) => functions.setTimeout(f, delay), clear, value, options);
  },
  setImmediate(value, options = {}) { return wait((f) => functions.setImmediate(f), functions.clearImmediate, value, options); },
  async* setInterval(delay, value, options = {}) {
    checks.object(options, "options");
    checks.signal(options.signal, "options.signal");
    const { signal } = options;
    if (signal?.aborted) throw new AbortError(undefined, { cause: signal.reason });
    let due = 0;
    let wake;
    const timer = functions.setInterval(() => {
      due++;
      wake?.();
      wake = undefined;
    }, delay);
    const onAbort = () => wake?.();
    signal?.addEventListener("abort", onAbort, { __proto__: null, once: true });
    try {
      while (!signal?.aborted) {
        if (due === 0) await new Promise((resolve) => { wake = resolve; });
        for (; due > 0; due--) yield value;
      }
      throw new AbortError(undefined, { cause: signal.reason });
    } finally {
      clear(timer);
      signal?.removeEventListener("abort", onAbort);
    }
  },
};
put(promises, {
  scheduler: put({}, {
    wait(delay, options) { return promises.setTimeout(delay, undefined, options); },
    yield() { return promises.setImmediate(); },
  }),
});

hide(functions.setTimeout, kCustomPromisify, promises.setTimeout);
hide(functions.setImmediate, kCustomPromisify, promises.setImmediate);
internal.nodeModules.timers = put(put({}, functions), { promises });
