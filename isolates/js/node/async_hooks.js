// node/async_hooks.js is node:async_hooks: the AsyncLocalStorage that is a global anyway, and AsyncResource over it.
// There are no hooks: createHook() makes one that is never called.

"use strict";

const { ObjectDefineProperty } = primordials;
const { checks, put } = internal.node;

const { AsyncLocalStorage } = internal;

let lastId = 1;

class AsyncResource {
  #type;
  #id = ++lastId;
  #trigger;
  #values;
  constructor(type, options = undefined) {
    internal.useFrames();
    this.#values = internal.frameValues();
    checks.string(type, "type");
    this.#type = type;
    this.#trigger = typeof options === "number" ? options : options?.triggerAsyncId ?? 1;
  }
  get type() { return this.#type; }
  runInAsyncScope(fn, self, ...args) { return internal.withValues(this.#values, fn, self, args); }
  emitDestroy() { return this; }
  asyncId() { return this.#id; }
  triggerAsyncId() { return this.#trigger; }
  bind(fn, self) {
    checks.function(fn, "fn");
    const values = this.#values;
    const bound = function (...args) { return internal.withValues(values, fn, self === undefined ? this : self, args); };
    ObjectDefineProperty(bound, "length",
      { __proto__: null, value: fn.length, writable: false, enumerable: false, configurable: true });
    return bound;
  }
  static bind(fn, type, self) {
    checks.function(fn, "fn");
    return new AsyncResource(type || fn.name || "bound-anonymous-fn").bind(fn, self);
  }
}

const hook = {
  enable() { return this; },
  disable() { return this; },
};

internal.nodeModules.async_hooks = put({}, {
  AsyncLocalStorage, AsyncResource,
  asyncWrapProviders: put({}, { NONE: 0 }),
  createHook() { return put({}, hook); },
  executionAsyncId() { return 0; },
  executionAsyncResource() { return {}; },
  triggerAsyncId() { return 0; },
});
