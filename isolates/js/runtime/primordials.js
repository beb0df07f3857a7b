// runtime/primordials.js takes the ECMAScript functions that the runtime uses later, before handler code can replace
// them. After bootstrap the runtime calls only these copies. Handler code that replaces Promise.prototype.then or
// Array.prototype[Symbol.iterator] changes only its own behavior.

"use strict";

const { bind, call } = Function.prototype;
const uncurryThis = bind.bind(call);

primordials.uncurryThis = uncurryThis;
primordials.globalThis = globalThis;

function capitalise(name) {
  return name[0].toUpperCase() + name.slice(1);
}

// statics keeps functions and constants of an object as <Prefix><Name>. Functions have no `this` unless bound is
// true.
function statics(prefix, source, names, bound) {
  for (const name of names) {
    const value = source[name];
    primordials[prefix + capitalise(name)] = bound ? bind.call(value, source) : value;
  }
}

// methods keeps prototype methods as functions of (self, ...args) and getters as <Prefix>PrototypeGet<Name>(self).
function methods(prefix, proto, names, getters = []) {
  for (const name of names) {
    primordials[prefix + "Prototype" + capitalise(name)] = uncurryThis(proto[name]);
  }
  for (const name of getters) {
    const getter = Reflect.getOwnPropertyDescriptor(proto, name).get;
    primordials[prefix + "PrototypeGet" + capitalise(name)] = uncurryThis(getter);
  }
}

const constructors = {
  AggregateError, Array, ArrayBuffer, BigInt, BigInt64Array, BigUint64Array, Boolean, DataView, Date, Error, EvalError,
  Float32Array, Float64Array, Function, Int8Array, Int16Array, Int32Array, Map, Number, Object, Promise, Proxy,
  RangeError, ReferenceError, RegExp, Set, String, Symbol, SyntaxError, TypeError, URIError, Uint8Array, Uint8ClampedArray,
  Uint16Array, Uint32Array, WeakMap, WeakRef, WeakSet,
};
for (const name of Object.keys(constructors)) {
  primordials[name] = constructors[name];
  if (constructors[name].prototype) primordials[name + "Prototype"] = constructors[name].prototype;
}

const TypedArray = Reflect.getPrototypeOf(Uint8Array);
const IteratorPrototype = Reflect.getPrototypeOf(Reflect.getPrototypeOf([][Symbol.iterator]()));
primordials.TypedArray = TypedArray;
primordials.TypedArrayPrototype = TypedArray.prototype;
primordials.IteratorPrototype = IteratorPrototype;
primordials.AsyncIteratorPrototype =
  Reflect.getPrototypeOf(Reflect.getPrototypeOf(async function* () {}).prototype);

statics("Reflect", Reflect, ["apply", "construct", "defineProperty", "deleteProperty", "get", "getOwnPropertyDescriptor",
  "getPrototypeOf", "has", "ownKeys", "set", "setPrototypeOf"]);
statics("Object", Object, ["assign", "create", "defineProperty", "freeze", "getOwnPropertyNames", "getOwnPropertySymbols",
  "getPrototypeOf", "is", "isExtensible", "isFrozen", "isSealed", "keys", "seal", "setPrototypeOf"]);
statics("Array", Array, ["isArray"]);
statics("ArrayBuffer", ArrayBuffer, ["isView"]);
statics("JSON", JSON, ["parse", "stringify"]);
statics("Number", Number, ["isFinite", "isInteger", "isNaN", "isSafeInteger", "parseInt", "parseFloat"]);
statics("Math", Math, ["abs", "ceil", "floor", "max", "min", "pow", "round", "trunc"]);
statics("BigInt", BigInt, ["asIntN", "asUintN"]);
statics("String", String, ["fromCharCode", "fromCodePoint"]);
statics("Symbol", Symbol, ["asyncIterator", "hasInstance", "iterator", "toPrimitive", "toStringTag"]);
statics("Date", Date, ["now"]);
statics("Promise", Promise, ["reject", "resolve"], true);

methods("Object", Object.prototype, ["hasOwnProperty", "propertyIsEnumerable", "toString"]);
methods("Function", Function.prototype, ["toString"]);
methods("Array", Array.prototype, ["indexOf", "join", "sort", "values"]);
methods("ArrayBuffer", ArrayBuffer.prototype, ["transfer"],
  ["byteLength", "detached", "maxByteLength", "resizable"]);
methods("DataView", DataView.prototype, ["getUint8", "setUint8"], ["buffer", "byteLength", "byteOffset"]);
methods("TypedArray", TypedArray.prototype, ["set"],
  ["buffer", "byteLength", "byteOffset", "length"]);
primordials.TypedArrayPrototypeGetTag =
  uncurryThis(Reflect.getOwnPropertyDescriptor(TypedArray.prototype, Symbol.toStringTag).get);
methods("BigInt", BigInt.prototype, ["toString", "valueOf"]);
methods("Boolean", Boolean.prototype, ["valueOf"]);
methods("Number", Number.prototype, ["toString", "toFixed", "valueOf"]);
methods("String", String.prototype, ["charCodeAt", "codePointAt", "endsWith", "includes", "indexOf", "isWellFormed",
  "lastIndexOf", "localeCompare", "normalize", "padEnd", "padStart", "repeat", "slice", "startsWith", "toLowerCase",
  "toUpperCase", "toWellFormed", "trim", "valueOf"]);
methods("Symbol", Symbol.prototype, ["toString", "valueOf"], ["description"]);
methods("Date", Date.prototype, ["getTime", "toISOString", "toString", "toUTCString"]);
methods("RegExp", RegExp.prototype, ["exec", "toString"], ["flags", "global", "source"]);
methods("Error", Error.prototype, ["toString"]);
methods("Map", Map.prototype, ["clear", "delete", "entries", "forEach", "get", "has", "set"], ["size"]);
methods("Set", Set.prototype, ["add", "clear", "delete", "forEach", "has", "values"], ["size"]);
methods("WeakMap", WeakMap.prototype, ["delete", "get", "has", "set"]);
methods("WeakSet", WeakSet.prototype, ["add", "delete", "has"]);
methods("WeakRef", WeakRef.prototype, ["deref"]);
methods("Promise", Promise.prototype, ["then"]);
primordials.MapIteratorPrototypeNext = uncurryThis(Reflect.getPrototypeOf(new Map().entries()).next);
primordials.SetIteratorPrototypeNext = uncurryThis(Reflect.getPrototypeOf(new Set().values()).next);
primordials.DecodeURIComponent = decodeURIComponent;
primordials.ErrorCaptureStackTrace = Error.captureStackTrace;
primordials.ErrorPrototypeToString = uncurryThis(Error.prototype.toString);

// takeLate takes V8's newest features. V8 adds them to a context only after it made the context from a snapshot, and
// not while it makes a snapshot. events/entry.js calls takeLate in each context, before handler code. So other code
// must read these features from primordials at each use.
primordials.takeLate = () => {
  primordials.ErrorIsError = primordials.Error.isError;
  primordials.ObjectDefineProperty(primordials.Error, "isError",
    { __proto__: null, value: isError.isError, writable: true, enumerable: false, configurable: true });
  primordials.Float16Array = globalThis.Float16Array;
  primordials.WebAssembly = globalThis.WebAssembly;
  const { prepareStackTrace } = primordials.Error;
  primordials.Error.prepareStackTrace = (_, sites) => sites;
  const site = new primordials.Error().stack[0]; // a stack has no frames while V8 makes a snapshot
  primordials.Error.prepareStackTrace = prepareStackTrace;
  primordials.Error.stackTraceLimit = 20; // V8's 10, and as many of the runtime, which prepareStackTrace leaves out
  primordials.CallSitePrototypeToString = primordials.uncurryThis(primordials.ReflectGetPrototypeOf(site).toString);
};

// isError is an Error.isError that is also true for a DOMException, as Web IDL requires. For V8 a DOMException is an
// ordinary object.
const isError = {
  isError(value) {
    return primordials.ErrorIsError(value) || primordials.isDOMException(value);
  },
};

// V8 makes `stack` an own accessor with one shared getter. With a copy of that getter, the runtime can read a stack
// even if handler code has redefined it.
primordials.ErrorStackGetter = Reflect.getOwnPropertyDescriptor(new Error(), "stack").get;

// lengthOf and subarray replace bytes.length and bytes.subarray(). Handler code can patch the getter of length. It
// can also replace the constructor whose species subarray() reads.
const lengthOf = primordials.TypedArrayPrototypeGetLength;
primordials.lengthOf = lengthOf;
primordials.subarray = (bytes, start, end = lengthOf(bytes)) =>
  new Uint8Array(primordials.TypedArrayPrototypeGetBuffer(bytes), primordials.TypedArrayPrototypeGetByteOffset(bytes) + start,
    end - start);

// split is String.prototype.split for a separator of one character. It does not look up Symbol.split.
primordials.split = (text, separator) => {
  const parts = new primordials.List();
  let at = 0;
  for (;;) {
    const end = primordials.StringPrototypeIndexOf(text, separator, at);
    if (end === -1) break;
    parts[parts.length] = primordials.StringPrototypeSlice(text, at, end);
    at = end + 1;
  }
  parts[parts.length] = primordials.StringPrototypeSlice(text, at);
  return parts;
};

// sealedProto separates an internal class from Object.prototype. Then no setter or getter that handler code defines
// there can see the runtime's state. Internal classes must declare every field.
function sealedProto(Class) {
  primordials.ObjectSetPrototypeOf(Class.prototype, null);
  return Class;
}
primordials.sealedProto = sealedProto;

// List is the runtime's array. Its prototype chain has no prototype of the handler code, so `list[list.length] = v`
// is always an own store.
class List extends Array {
  constructor() {
    super();
  }
}
delete List.prototype.constructor;
primordials.List = sealedProto(List);

// Queue is a first-in first-out list. It is a linked list, so that shift is cheap for long queues too.
class QueueNode {
  next = null;
  value;
  constructor(value) {
    this.value = value;
  }
}
sealedProto(QueueNode);

class Queue {
  head = null;
  tail = null;
  length = 0;
  push(value) {
    const node = new QueueNode(value);
    if (this.tail === null) this.head = node;
    else this.tail.next = node;
    this.tail = node;
    this.length++;
  }
  shift() {
    const node = this.head;
    if (node === null) return undefined;
    this.head = node.next;
    if (this.head === null) this.tail = null;
    this.length--;
    return node.value;
  }
  peek() {
    return this.head === null ? undefined : this.head.value;
  }
  clear() {
    this.head = this.tail = null;
    this.length = 0;
  }
}
primordials.Queue = sealedProto(Queue);
