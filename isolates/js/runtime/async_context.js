// runtime/async_context.js is AsyncLocalStorage as Node and Workers have it, and AsyncContext of the TC39 proposal.
// Their values follow the code that set them through promises and timers. A Frame of runtime/runs.js carries the
// values.

"use strict";

const {
  ObjectCreate, ObjectDefineProperty, ObjectPrototype, TypeError, sealedProto,
} = primordials;
const { defineGlobal, defineTag, isObject, toDOMString } = internal;

// Key identifies the value of one storage. Handler code never sees a key.
class Key {
  name;
  initial; // the value where no value is set
  constructor(name, initial) {
    this.name = name;
    this.initial = initial;
  }
}
sealedProto(Key);

// Binding is one value that is set, in a list that never changes. A list has each key at most once. So a list is
// never longer than the number of storages, no matter how deep the calls of run are nested.
class Binding {
  key;
  value;
  next;
  constructor(key, value, next) {
    this.key = key;
    this.value = value;
    this.next = next;
  }
}
sealedProto(Binding);

function lookUp(values, key) {
  for (let b = values; b !== null; b = b.next) {
    if (b.key === key) return b.value;
  }
  return key.initial;
}

// without returns the list without the value of key. It returns the same list when the list has no such value.
function without(values, key) {
  let found = false;
  for (let b = values; b !== null && !found; b = b.next) found = b.key === key;
  if (!found) return values;
  let out = null;
  for (let b = values; b !== null; b = b.next) {
    if (b.key !== key) out = new Binding(b.key, b.value, out);
  }
  return out;
}

function bound(key, value) {
  return new Binding(key, value, without(internal.frameValues(), key));
}

function requireFunction(value, what) {
  if (typeof value !== "function") throw new TypeError(`${what} is not a function`);
}

// makeKey reads a missing name or default value as undefined.
function makeKey(options, what) {
  if (options !== undefined && !isObject(options)) throw new TypeError(`${what}: the options are not an object`);
  const initial = options?.defaultValue;
  const name = options?.name;
  internal.useFrames();
  return new Key(name === undefined ? "" : toDOMString(name), initial);
}

// ---- AsyncLocalStorage ----

let keyOf;

class AsyncLocalStorage {
  #key;
  constructor(options = undefined) {
    this.#key = makeKey(options, "new AsyncLocalStorage");
  }
  static {
    keyOf = (value) => {
      if (!isObject(value) || !(#key in value)) throw internal.illegalInvocation("AsyncLocalStorage");
      return value.#key;
    };
  }
  static bind(fn) {
    requireFunction(fn, "AsyncLocalStorage.bind: the argument");
    internal.useFrames();
    const values = internal.frameValues();
    const out = { bound(...args) { return internal.withValues(values, fn, this, args); } }.bound;
    ObjectDefineProperty(out, "length",
      { __proto__: null, value: fn.length, writable: false, enumerable: false, configurable: true });
    return out;
  }
  static snapshot() {
    internal.useFrames();
    const values = internal.frameValues();
    return (fn, ...args) => {
      requireFunction(fn, "AsyncLocalStorage.snapshot: the argument");
      return internal.withValues(values, fn, undefined, args);
    };
  }
  get name() { return keyOf(this).name; }
  getStore() { return lookUp(internal.frameValues(), keyOf(this)); }
  run(store, callback, ...args) {
    const key = keyOf(this);
    requireFunction(callback, "AsyncLocalStorage.run: the callback");
    return internal.withValues(bound(key, store), callback, undefined, args);
  }
  exit(callback, ...args) {
    const key = keyOf(this);
    requireFunction(callback, "AsyncLocalStorage.exit: the callback");
    return internal.withValues(bound(key, undefined), callback, undefined, args);
  }
  enterWith(store) {
    internal.setValues(bound(keyOf(this), store));
  }
  disable() {
    internal.setValues(without(internal.frameValues(), keyOf(this)));
  }
}
defineGlobal("AsyncLocalStorage", AsyncLocalStorage);
internal.AsyncLocalStorage = AsyncLocalStorage;

// ---- AsyncContext ----

let variableKey;

class Variable {
  #key;
  constructor(options = undefined) {
    this.#key = makeKey(options, "new AsyncContext.Variable");
  }
  static {
    variableKey = (value) => {
      if (!isObject(value) || !(#key in value)) throw internal.illegalInvocation("AsyncContext.Variable");
      return value.#key;
    };
  }
  get name() { return variableKey(this).name; }
  get() { return lookUp(internal.frameValues(), variableKey(this)); }
  run(value, fn, ...args) {
    const key = variableKey(this);
    requireFunction(fn, "AsyncContext.Variable.run: the callback");
    return internal.withValues(bound(key, value), fn, undefined, args);
  }
}

class Snapshot {
  #values;
  constructor() {
    internal.useFrames();
    this.#values = internal.frameValues();
  }
  static wrap(fn) {
    requireFunction(fn, "AsyncContext.Snapshot.wrap: the argument");
    internal.useFrames();
    const values = internal.frameValues();
    const out = { wrapped(...args) { return internal.withValues(values, fn, this, args); } }.wrapped;
    ObjectDefineProperty(out, "length",
      { __proto__: null, value: fn.length, writable: false, enumerable: false, configurable: true });
    ObjectDefineProperty(out, "name",
      { __proto__: null, value: fn.name, writable: false, enumerable: false, configurable: true });
    return out;
  }
  run(fn, ...args) {
    if (!(#values in this)) throw internal.illegalInvocation("AsyncContext.Snapshot");
    requireFunction(fn, "AsyncContext.Snapshot.run: the callback");
    return internal.withValues(this.#values, fn, undefined, args);
  }
}

defineTag(Variable.prototype, "AsyncContext.Variable");
defineTag(Snapshot.prototype, "AsyncContext.Snapshot");
const AsyncContext = ObjectCreate(ObjectPrototype);
internal.defineAlias(AsyncContext, "Variable", Variable);
internal.defineAlias(AsyncContext, "Snapshot", Snapshot);
defineTag(AsyncContext, "AsyncContext");
defineGlobal("AsyncContext", AsyncContext);
