// runtime/webidl.js converts values as Web IDL requires and gives classes the form of Web IDL interfaces.

"use strict";

const {
  List, MathFloor, MathTrunc, NumberIsFinite, NumberIsNaN, ObjectDefineProperty, ObjectSetPrototypeOf, Promise, PromisePrototypeThen, PromiseResolve,
  ReflectApply, ReflectDefineProperty, ReflectGetOwnPropertyDescriptor, ReflectGetPrototypeOf, ReflectOwnKeys,
  StringPrototypeCharCodeAt, StringPrototypeIsWellFormed, StringPrototypeToWellFormed, SymbolIterator, SymbolToStringTag, TypeError,
  WeakSet, WeakSetPrototypeAdd, WeakSetPrototypeHas, globalThis, sealedProto,
} = primordials;

// ---- scalars ----

function toDOMString(value) {
  return typeof value === "string" ? value : `${value}`;
}

function toUSVString(value) {
  const s = typeof value === "string" ? value : `${value}`;
  return StringPrototypeIsWellFormed(s) ? s : StringPrototypeToWellFormed(s);
}

function toByteString(value, what) {
  const s = typeof value === "string" ? value : `${value}`;
  for (let i = 0; i < s.length; i++) {
    if (StringPrototypeCharCodeAt(s, i) > 255) {
      throw new TypeError(`${what ?? "value"} has a character above 255 at index ${i} and is not a byte string`);
    }
  }
  return s;
}

// toInteger is ConvertToInt for up to 53 bits; mode is "", "enforce" or "clamp".
function toInteger(value, bits, signed, mode, what) {
  let x = +value;
  let upper;
  let lower;
  if (bits === 64) {
    upper = 9007199254740991;
    lower = signed ? -9007199254740991 : 0;
  } else {
    upper = signed ? 2 ** (bits - 1) - 1 : 2 ** bits - 1;
    lower = signed ? -(2 ** (bits - 1)) : 0;
  }
  if (mode === "enforce") {
    if (!NumberIsFinite(x)) throw new TypeError(`${what ?? "value"} is not a finite number`);
    x = MathTrunc(x);
    if (x < lower || x > upper) throw new TypeError(`${what ?? "value"} is outside the range of ${lower} to ${upper}`);
    return x + 0;
  }
  if (mode === "clamp") {
    if (NumberIsNaN(x)) return 0;
    if (x < lower) x = lower;
    if (x > upper) x = upper;
    return roundHalfEven(x);
  }
  if (!NumberIsFinite(x)) return 0;
  x = MathTrunc(x);
  const modulus = 2 ** bits;
  x = x % modulus;
  if (x < 0) x += modulus;
  if (signed && x >= modulus / 2) x -= modulus;
  return x + 0;
}

function roundHalfEven(x) {
  const floor = MathFloor(x);
  const diff = x - floor;
  if (diff < 0.5) return floor + 0;
  if (diff > 0.5) return floor + 1;
  return floor % 2 === 0 ? floor + 0 : floor + 1;
}

const toUnsignedShort = (value, mode, what) => toInteger(value, 16, false, mode, what);
const toLong = (value, mode, what) => toInteger(value, 32, true, mode, what);
const toUnsignedLong = (value, mode, what) => toInteger(value, 32, false, mode, what);
const toLongLong = (value, mode, what) => toInteger(value, 64, true, mode, what);
const toUnsignedLongLong = (value, mode, what) => toInteger(value, 64, false, mode, what);

function toUnrestrictedDouble(value) {
  return +value;
}

function toEnum(value, allowed, what) {
  const s = toDOMString(value);
  for (let i = 0; i < allowed.length; i++) {
    if (allowed[i] === s) return s;
  }
  throw new TypeError(`${what} is ${internal.inspectBrief(s)}, which is not one of its allowed values`);
}

function isObject(value) {
  return (typeof value === "object" && value !== null) || typeof value === "function";
}

// ---- sequences, records, dictionaries, callbacks ----

// toSequence converts any iterable of the handler code. method is its Symbol.iterator if the caller already looked it
// up.
function toSequence(value, convert, what, method) {
  if (!isObject(value)) throw new TypeError(`${what} is not iterable`);
  method ??= value[SymbolIterator];
  if (typeof method !== "function") throw new TypeError(`${what} is not iterable`);
  const iterator = ReflectApply(method, value, []);
  if (!isObject(iterator)) throw new TypeError(`the iterator of ${what} is not an object`);
  const next = iterator.next;
  const list = new List();
  for (;;) {
    const step = ReflectApply(next, iterator, []);
    if (!isObject(step)) throw new TypeError(`the iterator of ${what} gave a result that is not an object`);
    if (step.done) return list;
    list[list.length] = convert(step.value, what);
  }
}

// toRecord returns a flat List of key, value, key, value, in the order of the object's own keys.
function toRecord(value, convertKey, convertValue, what) {
  if (!isObject(value)) throw new TypeError(`${what} is not an object`);
  const keys = ReflectOwnKeys(value);
  const list = new List();
  let changed = false; // a conversion changed a key, so two keys can be the same
  for (let i = 0; i < keys.length; i++) {
    const descriptor = ReflectGetOwnPropertyDescriptor(value, keys[i]);
    if (descriptor === undefined || !descriptor.enumerable) continue;
    const key = convertKey(keys[i], what);
    const item = convertValue(value[keys[i]], what);
    changed ||= key !== keys[i];
    const at = changed ? indexOfKey(list, key) : list.length;
    list[at] = key;
    list[at + 1] = item;
  }
  return list;
}

// indexOfKey returns the index of a key in a flat list, or the list's length.
function indexOfKey(list, key) {
  let i = 0;
  while (i < list.length && list[i] !== key) i += 2;
  return i;
}

// toDictionary checks that a value can be read as a dictionary. It reads undefined and null as a dictionary without
// members.
function toDictionary(value, what) {
  if (value === undefined || value === null) return undefined;
  if (!isObject(value)) throw new TypeError(`${what} is not an object`);
  return value;
}

function toCallback(value, what) {
  if (typeof value !== "function") throw new TypeError(`${what} is not a function`);
  return value;
}

function requireArguments(count, needed, what) {
  if (count < needed) {
    throw new TypeError(`${what}: ${needed} argument${needed === 1 ? "" : "s"} required, but only ${count} present`);
  }
}

function illegalConstructor() {
  return new TypeError("Illegal constructor");
}

function illegalInvocation(name) {
  return new TypeError(`Illegal invocation: this is not a ${name}`);
}

// ---- promises ----

function noop() {}

class Capability {
  promise;
  resolve;
  reject;
}
sealedProto(Capability);

// newCapability returns a promise together with its resolve and reject functions.
function newCapability() {
  const c = new Capability();
  c.promise = new Promise((resolve, reject) => {
    c.resolve = resolve;
    c.reject = reject;
  });
  return c;
}

function markHandled(promise) {
  PromisePrototypeThen(promise, undefined, noop);
}

// upon reacts to a promise. The reactions must return undefined. Their result goes to a promise that a species of the
// handler code can control.
function upon(promise, fulfilled, rejected) {
  PromisePrototypeThen(promise, fulfilled, rejected);
}

// resolvedWith is Web IDL's "a promise resolved with". If the value is already a promise, resolvedWith returns
// another promise, which settles two microtasks later, as resolve(value) would do. The code does not call
// resolve(value), because that looks up a then that handler code can replace.
function resolvedWith(value) {
  const promise = PromiseResolve(value);
  if (promise !== value) return promise;
  const c = newCapability();
  upon(PromiseResolve(undefined), () => { upon(promise, c.resolve, c.reject); });
  return c.promise;
}

// follow settles a capability as another promise does.
function follow(capability, promise) {
  upon(promise, () => { capability.resolve(undefined); }, (error) => { capability.reject(error); });
}

// ---- interfaces ----

// exposeMembers makes the members of a class enumerable, like the operations and attributes of Web IDL.
function exposeMembers(target, skip) {
  const keys = ReflectOwnKeys(target);
  for (let i = 0; i < keys.length; i++) {
    const key = keys[i];
    if (typeof key === "symbol" || key === "constructor" || key === skip) continue;
    if (key === "length" || key === "name" || key === "prototype") {
      if (typeof target === "function") continue;
    }
    ReflectDefineProperty(target, key, { __proto__: null, enumerable: true });
  }
}

// copyMembers gives a class the methods and accessors of an object. Handler code may have changed Object.prototype, from
// which a descriptor would inherit.
function copyMembers(Class, members) {
  const keys = ReflectOwnKeys(members);
  for (let i = 0; i < keys.length; i++) {
    const descriptor = ReflectGetOwnPropertyDescriptor(members, keys[i]);
    ObjectDefineProperty(Class.prototype, keys[i], ObjectSetPrototypeOf(descriptor, null));
  }
}

// defineGlobal puts a value on the global object as Web IDL puts an interface: writable, configurable, not
// enumerable.
function defineGlobal(name, value, enumerable = false) {
  if (internal.provide(name, value)) return;
  ObjectDefineProperty(globalThis, name, { __proto__: null, value, writable: true, enumerable, configurable: true });
}

// defineAttribute puts the object that read returns on the global object as Web IDL puts a read-only attribute. An
// assignment to a replaceable attribute replaces it.
function defineAttribute(name, read, replaceable = false) {
  const members = {
    get [name]() {
      checkGlobal(this);
      return read();
    },
    set [name](given) {
      checkGlobal(this);
      defineGlobal(name, given, true);
    },
  };
  const { get, set } = ReflectGetOwnPropertyDescriptor(members, name);
  ObjectDefineProperty(globalThis, name,
    { __proto__: null, get, set: replaceable ? set : undefined, enumerable: true, configurable: true });
}

function checkGlobal(self) {
  if (self !== undefined && self !== null && self !== globalThis) throw illegalInvocation("global object");
}

// platformPrototypes has the prototype of every interface. For structuredClone, an object that inherits from one of
// them is a platform object.
const platformPrototypes = new WeakSet();

internal.isPlatformObject = (value) => {
  for (let p = ReflectGetPrototypeOf(value); p !== null; p = ReflectGetPrototypeOf(p)) {
    if (WeakSetPrototypeHas(platformPrototypes, p)) return true;
  }
  return false;
};

// defineInterface finishes a class: enumerable members, Symbol.toStringTag, and the global unless hidden.
function defineInterface(Class, name, hidden = false) {
  exposeMembers(Class.prototype);
  exposeMembers(Class);
  WeakSetPrototypeAdd(platformPrototypes, Class.prototype);
  defineTag(Class.prototype, name);
  if (!hidden) defineGlobal(name, Class);
  return Class;
}

// describers has an entry for each interface that calls addInspector: {is(value), fields(value) → flat list of key, value,
// pairs}. inspect writes the interface's objects by it.
const describers = new List();
internal.describers = describers;

// addInspector adds a describer. With pairs, the list has entries and not members.
internal.addInspector = (is, fields, pairs = false) => {
  describers[describers.length] = { __proto__: null, is, fields, pairs };
};

function defineTag(proto, name) {
  ObjectDefineProperty(proto, SymbolToStringTag,
    { __proto__: null, value: name, writable: false, enumerable: false, configurable: true });
}

// defineConstants defines numbers on an interface and its prototype.
function defineConstants(Class, constants) {
  const keys = ReflectOwnKeys(constants);
  for (let i = 0; i < keys.length; i++) {
    const descriptor = { __proto__: null, value: constants[keys[i]], writable: false, enumerable: true, configurable: false };
    ObjectDefineProperty(Class, keys[i], descriptor);
    ObjectDefineProperty(Class.prototype, keys[i], descriptor);
  }
}

// defineAlias makes target[key] the same function as another member, as iterables require.
function defineAlias(target, key, value) {
  ObjectDefineProperty(target, key, { __proto__: null, value, writable: true, enumerable: false, configurable: true });
}

// defineOperation makes a function a global operation. It is enumerable, like setTimeout and fetch.
function defineOperation(name, fn) {
  defineGlobal(name, fn, true);
}

primordials.ObjectAssign(internal, {
  toDOMString, toUSVString, toByteString, toInteger, toUnsignedShort, toLong, toUnsignedLong, toLongLong, toUnsignedLongLong,
  toUnrestrictedDouble, toEnum, isObject, toSequence, toRecord, toDictionary, toCallback, requireArguments, illegalConstructor,
  illegalInvocation, noop, newCapability, markHandled, upon,
  resolvedWith, follow, copyMembers, exposeMembers, checkGlobal, defineAttribute, defineGlobal, defineInterface, defineTag, defineConstants, defineAlias, defineOperation,
});

// appendArray appends to an array that handler code gets. It works even if handler code changed Array.prototype.
internal.appendArray = (array, value) => {
  ObjectDefineProperty(array, array.length,
    { __proto__: null, value, writable: true, enumerable: true, configurable: true });
};
