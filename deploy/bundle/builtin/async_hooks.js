// node:async_hooks, as much of it as a worker has: AsyncLocalStorage, which is a global there, and AsyncResource over it.

const { AsyncLocalStorage } = globalThis;

class AsyncResource {
  #type;
  #enter = AsyncLocalStorage.snapshot();

  constructor(type) {
    if (typeof type !== "string") throw new TypeError("new AsyncResource: the type is not a string");
    this.#type = type;
  }

  get type() {
    return this.#type;
  }

  runInAsyncScope(fn, thisArg, ...args) {
    return this.#enter(() => Reflect.apply(fn, thisArg, args));
  }

  bind(fn, thisArg) {
    if (typeof fn !== "function") throw new TypeError("AsyncResource.bind: the argument is not a function");
    const resource = this;
    const bound = function (...args) {
      return resource.runInAsyncScope(fn, thisArg === undefined ? this : thisArg, ...args);
    };
    return Object.defineProperty(bound, "length", { value: fn.length, configurable: true });
  }

  static bind(fn, type, thisArg) {
    return new AsyncResource(type ?? (fn?.name || "bound-anonymous-fn")).bind(fn, thisArg);
  }

  emitDestroy() {
    return this;
  }
}

export { AsyncLocalStorage, AsyncResource };
export default { AsyncLocalStorage, AsyncResource };
