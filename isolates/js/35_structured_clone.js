// 35_structured_clone.js is structuredClone: HTML's StructuredSerializeWithTransfer into records, transfer, then
// StructuredDeserialize. Two phases, so that a value that cannot be cloned leaves every buffer where it was.

"use strict";

const {
  Array, ArrayBuffer, ArrayBufferIsView, ArrayBufferPrototypeGetByteLength, ArrayBufferPrototypeGetDetached,
  ArrayBufferPrototypeGetMaxByteLength, ArrayBufferPrototypeGetResizable, ArrayBufferPrototypeTransfer, ArrayIsArray,
  BigIntPrototypeValueOf, BooleanPrototypeValueOf, DataView, DataViewPrototypeGetBuffer, DataViewPrototypeGetByteLength,
  DataViewPrototypeGetByteOffset, Date, DatePrototypeGetTime, Error, EvalError, List, Map,
  MapIteratorPrototypeNext, MapPrototypeEntries, MapPrototypeGet, MapPrototypeGetSize, MapPrototypeSet,
  NumberPrototypeValueOf, Object, ObjectDefineProperty, ObjectPrototypeHasOwnProperty, PromisePrototype, RangeError,
  ReferenceError, ReflectConstruct, ReflectGetOwnPropertyDescriptor, ReflectOwnKeys, RegExp, RegExpPrototypeGetFlags,
  RegExpPrototypeGetGlobal, RegExpPrototypeGetSource, Set, SetIteratorPrototypeNext, SetPrototypeAdd,
  SetPrototypeGetSize, SetPrototypeValues, StringPrototypeValueOf, SymbolPrototypeValueOf, SyntaxError, TypeError,
  TypedArrayPrototypeGetBuffer, TypedArrayPrototypeGetByteOffset, TypedArrayPrototypeGetLength,
  TypedArrayPrototypeGetTag, TypedArrayPrototypeSet, URIError, Uint8Array, WeakMapPrototypeHas, WeakRefPrototypeDeref,
  WeakSetPrototypeHas, sealedProto,
} = primordials;
const {
  DOMException, dataProperty, defineOperation, isArrayBuffer, isObject, isProxy, rawStack, requireArguments,
  toDictionary, toSequence,
} = internal;

const errorTypes = { __proto__: null, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError };

// Rec is one object in its serialised form; result is what deserialising it made.
class Rec {
  kind;
  a;
  b;
  c;
  items = null; // List of entries
  result = undefined;
  made = false;
  constructor(kind, a, b, c) {
    this.kind = kind;
    this.a = a;
    this.b = b;
    this.c = c;
  }
}
sealedProto(Rec);

function notCloneable(value) {
  return new DOMException(`${internal.inspectBrief(value)} could not be cloned`, "DataCloneError");
}

function attempt(fn, value) {
  try {
    return fn(value);
  } catch {
    return undefined;
  }
}

// ---- serialise ----

function serialize(memory, value) {
  if (typeof value === "symbol") throw notCloneable(value);
  if (!isObject(value)) return value;
  const known = MapPrototypeGet(memory, value);
  if (known !== undefined) return known;
  if (typeof value === "function" || isProxy(value)) throw notCloneable(value);
  const rec = atom(value) ?? buffer(memory, value) ?? platform(value);
  if (rec !== undefined) {
    MapPrototypeSet(memory, value, rec);
    return rec;
  }
  return container(memory, value);
}

function atom(value) {
  const boxes = [["boolean", BooleanPrototypeValueOf], ["number", NumberPrototypeValueOf], ["bigint", BigIntPrototypeValueOf],
    ["string", StringPrototypeValueOf]];
  for (let i = 0; i < boxes.length; i++) {
    const inner = attempt(boxes[i][1], value);
    if (inner !== undefined) return new Rec("boxed", inner);
  }
  if (attempt(SymbolPrototypeValueOf, value) !== undefined) throw notCloneable(value);
  const time = attempt(DatePrototypeGetTime, value);
  if (time !== undefined) return new Rec("date", time);
  if (attempt(RegExpPrototypeGetGlobal, value) !== undefined) {
    return new Rec("regexp", RegExpPrototypeGetSource(value), RegExpPrototypeGetFlags(value));
  }
  return undefined;
}

function buffer(memory, value) {
  if (isArrayBuffer(value)) {
    if (ArrayBufferPrototypeGetDetached(value)) throw new DOMException("a detached ArrayBuffer cannot be cloned", "DataCloneError");
    const max = ArrayBufferPrototypeGetResizable(value) ? ArrayBufferPrototypeGetMaxByteLength(value) : undefined;
    return new Rec("buffer", TypedArrayPrototypeGetBuffer(new Uint8Array(new Uint8Array(value))), max);
  }
  if (!ArrayBufferIsView(value)) return undefined;
  const tag = TypedArrayPrototypeGetTag(value);
  const of = tag === undefined ? DataViewPrototypeGetBuffer(value) : TypedArrayPrototypeGetBuffer(value);
  const rec = new Rec("view", serialize(memory, of), tag);
  rec.c = tag === undefined
    ? { __proto__: null, offset: DataViewPrototypeGetByteOffset(value), length: DataViewPrototypeGetByteLength(value) }
    : { __proto__: null, offset: TypedArrayPrototypeGetByteOffset(value), length: TypedArrayPrototypeGetLength(value) };
  return rec;
}

// platform: objects of the runtime's own that can be cloned; the others cannot, nor what has hidden state.
function platform(value) {
  if (internal.isDOMException(value)) return new Rec("domexception", internal.domExceptionParts(value), rawStack(value));
  if (internal.isBlob !== undefined && internal.isBlob(value)) return new Rec("blob", value);
  if (primordials.ErrorIsError(value)) return undefined;
  if (internal.isPlatformObject(value) || hasHiddenState(value)) throw notCloneable(value);
  return undefined;
}

const probe = {};

function hasHiddenState(value) {
  return isPromise(value) || attempt((v) => WeakMapPrototypeHas(v, probe), value) !== undefined ||
    attempt((v) => WeakSetPrototypeHas(v, probe), value) !== undefined ||
    attempt((v) => [WeakRefPrototypeDeref(v)], value) !== undefined;
}

const promiseDetails = typeof host.promiseDetails === "function" ? host.promiseDetails : undefined;

function isPromise(value) {
  if (promiseDetails === undefined) return inherits(value, PromisePrototype);
  return (promiseDetails(value) ?? undefined) !== undefined;
}

function inherits(value, proto) {
  for (let p = primordials.ReflectGetPrototypeOf(value); p !== null; p = primordials.ReflectGetPrototypeOf(p)) {
    if (p === proto) return true;
  }
  return false;
}

function container(memory, value) {
  if (attempt(MapPrototypeGetSize, value) !== undefined) return mapRecord(memory, value);
  if (attempt(SetPrototypeGetSize, value) !== undefined) return setRecord(memory, value);
  if (primordials.ErrorIsError(value)) return errorRecord(memory, value);
  const rec = ArrayIsArray(value) ? new Rec("array", value.length) : new Rec("object");
  MapPrototypeSet(memory, value, rec);
  return properties(memory, value, rec);
}

function mapRecord(memory, value) {
  const rec = new Rec("map");
  MapPrototypeSet(memory, value, rec);
  const copied = new List();
  const iterator = MapPrototypeEntries(value);
  for (let step = MapIteratorPrototypeNext(iterator); !step.done; step = MapIteratorPrototypeNext(iterator)) {
    copied[copied.length] = step.value[0];
    copied[copied.length] = step.value[1];
  }
  rec.items = serializeAll(memory, copied);
  return rec;
}

function setRecord(memory, value) {
  const rec = new Rec("set");
  MapPrototypeSet(memory, value, rec);
  const copied = new List();
  const iterator = SetPrototypeValues(value);
  for (let step = SetIteratorPrototypeNext(iterator); !step.done; step = SetIteratorPrototypeNext(iterator)) {
    copied[copied.length] = step.value;
  }
  rec.items = serializeAll(memory, copied);
  return rec;
}

function serializeAll(memory, list) {
  const out = new List();
  for (let i = 0; i < list.length; i++) out[i] = serialize(memory, list[i]);
  return out;
}

function errorRecord(memory, value) {
  const rec = new Rec("error");
  MapPrototypeSet(memory, value, rec);
  const name = value.name;
  const text = name === undefined ? "Error" : internal.toDOMString(name);
  const descriptor = ReflectGetOwnPropertyDescriptor(value, "message");
  const message = descriptor !== undefined && ObjectPrototypeHasOwnProperty(descriptor, "value")
    ? internal.toDOMString(descriptor.value) : undefined;
  rec.a = errorTypes[text] ?? Error;
  rec.b = { __proto__: null, message, stack: rawStack(value) };
  if (ObjectPrototypeHasOwnProperty(value, "cause")) rec.items = serializeAll(memory, [dataProperty(value, "cause")]);
  return rec;
}

function properties(memory, value, rec) {
  const keys = ReflectOwnKeys(value);
  const items = new List();
  rec.items = items;
  for (let i = 0; i < keys.length; i++) {
    if (typeof keys[i] === "symbol") continue;
    const descriptor = ReflectGetOwnPropertyDescriptor(value, keys[i]);
    if (descriptor === undefined || !descriptor.enumerable) continue;
    const item = serialize(memory, value[keys[i]]);
    items[items.length] = keys[i];
    items[items.length] = item;
  }
  return rec;
}

// ---- deserialise ----

function deserialize(rec) {
  if (!isObject(rec)) return rec;
  if (rec.made) return rec.result;
  rec.made = true;
  return make(rec);
}

function make(rec) {
  switch (rec.kind) {
    case "boxed": return (rec.result = Object(rec.a));
    case "date": return (rec.result = new Date(rec.a));
    case "regexp": return (rec.result = new RegExp(rec.a, rec.b));
    case "buffer": return (rec.result = makeBuffer(rec));
    case "view": return (rec.result = makeView(rec));
    case "domexception": return (rec.result = makeException(rec));
    case "blob": return (rec.result = cloneBlob(rec.a));
    case "map": return makeMap(rec);
    case "set": return makeSet(rec);
    case "error": return makeError(rec);
    default: return makeObject(rec);
  }
}

function makeBuffer(rec) {
  if (rec.b === undefined) return rec.a;
  const out = new ArrayBuffer(ArrayBufferPrototypeGetByteLength(rec.a), { __proto__: null, maxByteLength: rec.b });
  TypedArrayPrototypeSet(new Uint8Array(out), new Uint8Array(rec.a));
  return out;
}

function makeView(rec) {
  const of = deserialize(rec.a);
  const Constructor = rec.b === undefined ? DataView : primordials[rec.b] ?? DataView;
  return ReflectConstruct(Constructor, [of, rec.c.offset, rec.c.length]);
}

function makeException(rec) {
  const out = new DOMException(rec.a.message, rec.a.name);
  setHidden(out, "stack", rec.b);
  return out;
}

function cloneBlob(blob) {
  const bytes = internal.blobView(blob);
  const type = internal.blobType(blob);
  return internal.isFile(blob) ? internal.newFile(bytes, type, internal.fileName(blob), internal.fileModified(blob))
    : internal.newBlob(bytes, type);
}

function makeMap(rec) {
  const out = (rec.result = new Map());
  for (let i = 0; i < rec.items.length; i += 2) MapPrototypeSet(out, deserialize(rec.items[i]), deserialize(rec.items[i + 1]));
  return out;
}

function makeSet(rec) {
  const out = (rec.result = new Set());
  for (let i = 0; i < rec.items.length; i++) SetPrototypeAdd(out, deserialize(rec.items[i]));
  return out;
}

function makeError(rec) {
  const out = (rec.result = new rec.a());
  if (rec.b.message !== undefined) setHidden(out, "message", rec.b.message);
  setHidden(out, "stack", rec.b.stack);
  if (rec.items !== null) setHidden(out, "cause", deserialize(rec.items[0]));
  return out;
}

function setHidden(object, key, value) {
  ObjectDefineProperty(object, key, { __proto__: null, value, writable: true, enumerable: false, configurable: true });
}

function makeObject(rec) {
  const out = (rec.result = rec.kind === "array" ? new Array(rec.a) : {});
  for (let i = 0; i < rec.items.length; i += 2) {
    ObjectDefineProperty(out, rec.items[i],
      { __proto__: null, value: deserialize(rec.items[i + 1]), writable: true, enumerable: true, configurable: true });
  }
  return out;
}

// ---- transfer ----

function clone(value, transfer) {
  const memory = new Map();
  const moved = new List();
  for (let i = 0; i < transfer.length; i++) {
    const item = transfer[i];
    if (!isArrayBuffer(item)) throw new DOMException("a value to transfer is not transferable", "DataCloneError");
    if (MapPrototypeGet(memory, item) !== undefined) throw new DOMException("a value is transferred twice", "DataCloneError");
    moved[i] = new Rec("moved", item);
    MapPrototypeSet(memory, item, moved[i]);
  }
  const rec = serialize(memory, value);
  for (let i = 0; i < moved.length; i++) {
    if (ArrayBufferPrototypeGetDetached(moved[i].a)) throw new DOMException("a buffer to transfer is detached", "DataCloneError");
  }
  for (let i = 0; i < moved.length; i++) {
    moved[i].result = ArrayBufferPrototypeTransfer(moved[i].a);
    moved[i].made = true;
  }
  return deserialize(rec);
}

const operations = {
  structuredClone(value, options = undefined) {
    requireArguments(arguments.length, 1, "structuredClone");
    const init = toDictionary(options, "structuredClone: the options");
    const given = init?.transfer;
    const transfer = given === undefined ? new List() : toSequence(given, (item) => {
      if (!isObject(item)) throw new TypeError("structuredClone: a value to transfer is not an object");
      return item;
    }, "structuredClone: transfer");
    return clone(value, transfer);
  },
};
defineOperation("structuredClone", operations.structuredClone);
internal.structuredClone = (value) => clone(value, new List());
