// node/util_types.js is util.types, and the comparison of values that util and assert share.

"use strict";

const {
  ArrayBufferIsView, ArrayIsArray, BigIntPrototypeValueOf, BooleanPrototypeValueOf, DatePrototypeGetTime, FunctionPrototypeToString,
  Map, MapPrototypeForEach, MapPrototypeGet, MapPrototypeGetSize, MapPrototypeHas, MapPrototypeSet, NumberPrototypeValueOf, ObjectIs,
  ObjectPrototypeHasOwnProperty, ObjectPrototypePropertyIsEnumerable, ObjectPrototypeToString, ReflectGetPrototypeOf,
  ReflectOwnKeys, RegExpPrototypeGetGlobal, RegExpPrototypeToString, SetPrototypeForEach, SetPrototypeGetSize, SetPrototypeHas,
  StringPrototypeStartsWith, StringPrototypeValueOf, SymbolPrototypeValueOf, SymbolToStringTag, TypedArrayPrototypeGetTag,
  WeakMapPrototypeHas, WeakSetPrototypeHas, lengthOf,
} = primordials;
const { isArrayBuffer, viewBytes } = internal;
const { node } = internal;
const { put } = node;

// is tells whether a getter or method of a built-in kind takes the value.
function is(read, value) {
  if (typeof value !== "object" || value === null) return false;
  try {
    read(value);
    return true;
  } catch {
    return false;
  }
}

const tagged = (value, tag) => typeof value === "object" && value !== null && !ObjectPrototypeHasOwnProperty(value, SymbolToStringTag) &&
  ObjectPrototypeToString(value) === `[object ${tag}]`;
const key = {};
const starts = (value, ...texts) => {
  if (typeof value !== "function") return false;
  const source = FunctionPrototypeToString(value);
  for (let i = 0; i < texts.length; i++) if (StringPrototypeStartsWith(source, texts[i])) return true;
  return false;
};

const functionKinds = (value, name) => {
  if (typeof value !== "function") return false;
  for (let p = ReflectGetPrototypeOf(value); p !== null; p = ReflectGetPrototypeOf(p)) {
    if (ObjectPrototypeHasOwnProperty(p, SymbolToStringTag)) return p[SymbolToStringTag] === name || p[SymbolToStringTag] === `Async${name}`;
  }
  return false;
};

const types = {
  isAnyArrayBuffer(value) { return isArrayBuffer(value); },
  isArgumentsObject(value) { return tagged(value, "Arguments"); },
  isArrayBuffer(value) { return isArrayBuffer(value); },
  isArrayBufferView(value) { return ArrayBufferIsView(value); },
  isAsyncFunction(value) {
    return typeof value === "function" && (starts(value, "async") || functionKinds(value, "Function")) && !starts(value, "class");
  },
  isBigIntObject(value) { return is(BigIntPrototypeValueOf, value); },
  isBooleanObject(value) { return is(BooleanPrototypeValueOf, value); },
  isBoxedPrimitive(value) {
    return types.isNumberObject(value) || types.isStringObject(value) || types.isBooleanObject(value) || types.isBigIntObject(value) ||
      types.isSymbolObject(value);
  },
  isCryptoKey(value) { return internal.isCryptoKey(value); },
  isDataView(value) { return ArrayBufferIsView(value) && TypedArrayPrototypeGetTag(value) === undefined; },
  isDate(value) { return is(DatePrototypeGetTime, value); },
  isExternal() { return false; },
  isGeneratorFunction(value) { return functionKinds(value, "GeneratorFunction"); },
  isGeneratorObject(value) { return tagged(value, "Generator") || tagged(value, "AsyncGenerator"); },
  isKeyObject() { return false; },
  isMap(value) { return is(MapPrototypeGetSize, value); },
  isMapIterator(value) { return tagged(value, "Map Iterator"); },
  isModuleNamespaceObject(value) {
    return typeof value === "object" && value !== null && ReflectGetPrototypeOf(value) === null && ObjectPrototypeToString(value) === "[object Module]";
  },
  isNativeError(value) { return primordials.ErrorIsError(value); },
  isNumberObject(value) { return is(NumberPrototypeValueOf, value); },
  isPromise(value) { return host.promiseDetails(value) !== undefined; },
  isProxy(value) { return host.proxyDetails(value) !== undefined; },
  isRegExp(value) { return is(RegExpPrototypeGetGlobal, value) && value !== primordials.RegExpPrototype; },
  isSet(value) { return is(SetPrototypeGetSize, value); },
  isSetIterator(value) { return tagged(value, "Set Iterator"); },
  isSharedArrayBuffer() { return false; },
  isStringObject(value) { return is(StringPrototypeValueOf, value); },
  isSymbolObject(value) { return is(SymbolPrototypeValueOf, value); },
  isTypedArray(value) { return ArrayBufferIsView(value) && TypedArrayPrototypeGetTag(value) !== undefined; },
  isWeakMap(value) { return is((v) => WeakMapPrototypeHas(v, key), value); },
  isWeakSet(value) { return is((v) => WeakSetPrototypeHas(v, key), value); },
};
const arrays = ["BigInt64Array", "BigUint64Array", "Float16Array", "Float32Array", "Float64Array", "Int8Array", "Int16Array", "Int32Array",
  "Uint8Array", "Uint8ClampedArray", "Uint16Array", "Uint32Array"];
for (let i = 0; i < arrays.length; i++) {
  const name = arrays[i];
  put(types, { [`is${name}`](value) { return ArrayBufferIsView(value) && TypedArrayPrototypeGetTag(value) === name; } });
}

// ---- comparison ----

const kinds = ["isDate", "isRegExp", "isNativeError", "isArrayBufferView", "isArrayBuffer", "isMap", "isSet", "isNumberObject", "isStringObject",
  "isBooleanObject", "isBigIntObject", "isSymbolObject", "isPromise", "isWeakMap", "isWeakSet"];

function kindOf(value) {
  if (ArrayIsArray(value)) return "array";
  for (let i = 0; i < kinds.length; i++) if (types[kinds[i]](value)) return kinds[i];
  return typeof value === "function" ? "function" : "object";
}

function sameSimple(a, b, strict) {
  if (strict) return ObjectIs(a, b);
  return a == b || (a !== a && b !== b); // eslint-disable-line eqeqeq
}

// equal compares two values in depth. seen has the pairs that are being compared, for values that lead to themselves.
function equal(a, b, strict, seen) {
  if (a === b) return a !== 0 || !strict || ObjectIs(a, b);
  const objects = typeof a === "object" && a !== null && typeof b === "object" && b !== null;
  if (!objects) {
    if (!strict && (typeof a === "object" && a !== null) !== (typeof b === "object" && b !== null)) return false;
    return sameSimple(a, b, strict);
  }
  if (strict && ReflectGetPrototypeOf(a) !== ReflectGetPrototypeOf(b)) return false;
  const kind = kindOf(a);
  if (kind !== kindOf(b)) return false;
  if (seen.get(a) === b) return true;
  const before = seen.get(a);
  seen.set(a, b);
  const result = sameInside(a, b, kind, strict, seen) && sameKeys(a, b, kind, strict, seen);
  seen.set(a, before);
  return result;
}

function sameInside(a, b, kind, strict, seen) {
  switch (kind) {
    case "array": return a.length === b.length;
    case "isDate": return ObjectIs(DatePrototypeGetTime(a), DatePrototypeGetTime(b));
    case "isRegExp": return RegExpPrototypeToString(a) === RegExpPrototypeToString(b) && a.lastIndex === b.lastIndex;
    case "isNativeError": return a.message === b.message && a.name === b.name && equal(a.cause, b.cause, strict, seen);
    case "isArrayBufferView": return sameView(a, b, strict);
    case "isArrayBuffer": return sameBytes(viewBytes(a), viewBytes(b));
    case "isMap": return MapPrototypeGetSize(a) === MapPrototypeGetSize(b) && sameMap(a, b, strict, seen);
    case "isSet": return SetPrototypeGetSize(a) === SetPrototypeGetSize(b) && sameSet(a, b, strict, seen);
    case "isNumberObject": return ObjectIs(NumberPrototypeValueOf(a), NumberPrototypeValueOf(b));
    case "isStringObject": return StringPrototypeValueOf(a) === StringPrototypeValueOf(b);
    case "isBooleanObject": return BooleanPrototypeValueOf(a) === BooleanPrototypeValueOf(b);
    case "isBigIntObject": return BigIntPrototypeValueOf(a) === BigIntPrototypeValueOf(b);
    case "isSymbolObject": return SymbolPrototypeValueOf(a) === SymbolPrototypeValueOf(b);
    case "isPromise": case "isWeakMap": case "isWeakSet": case "function": return false;
    default: return true;
  }
}

function sameView(a, b, strict) {
  const tag = TypedArrayPrototypeGetTag(a);
  if (tag !== TypedArrayPrototypeGetTag(b)) return false;
  if (strict || (tag !== "Float32Array" && tag !== "Float64Array")) return sameBytes(viewBytes(a), viewBytes(b));
  if (lengthOf(a) !== lengthOf(b)) return false;
  for (let i = 0; i < lengthOf(a); i++) if (a[i] !== b[i]) return false;
  return true;
}

function sameBytes(a, b) {
  if (lengthOf(a) !== lengthOf(b)) return false;
  for (let i = 0; i < lengthOf(a); i++) if (a[i] !== b[i]) return false;
  return true;
}

const simple = (value) => typeof value !== "object" || value === null;

// sameSet looks for a partner of each member. Members that are simple are looked up; the others are tried in turn.
function sameSet(a, b, strict, seen) {
  const left = [];
  let same = true;
  SetPrototypeForEach(a, (value) => {
    if (SetPrototypeHas(b, value)) return;
    if (simple(value) && strict) same = false;
    left.push(value);
  });
  if (!same) return false;
  const others = [];
  SetPrototypeForEach(b, (value) => { if (!SetPrototypeHas(a, value)) others.push(value); });
  return matched(left, others, (x, y) => equal(x, y, strict, seen));
}

function sameMap(a, b, strict, seen) {
  const left = [];
  let same = true;
  MapPrototypeForEach(a, (value, name) => {
    if (MapPrototypeHas(b, name)) {
      if (same && !equal(value, MapPrototypeGet(b, name), strict, seen)) same = false;
    } else if (simple(name) && strict) same = false;
    else left.push([name, value]);
  });
  if (!same) return false;
  const others = [];
  MapPrototypeForEach(b, (value, name) => { if (!MapPrototypeHas(a, name)) others.push([name, value]); });
  return matched(left, others, (x, y) => equal(x[0], y[0], strict, seen) && equal(x[1], y[1], strict, seen));
}

function matched(left, others, same) {
  if (left.length !== others.length) return false;
  for (let i = 0; i < left.length; i++) {
    let k = 0;
    while (k < others.length && !same(left[i], others[k])) k++;
    if (k === others.length) return false;
    others.splice(k, 1);
  }
  return true;
}

function enumerableKeys(value, strict, list) {
  const keys = ReflectOwnKeys(value);
  const out = [];
  for (let i = 0; i < keys.length; i++) {
    if (typeof keys[i] === "symbol" && !strict) continue;
    if (list && typeof keys[i] === "string" && keys[i] !== "" && +keys[i] >= 0) continue; // compared as bytes
    if (ObjectPrototypePropertyIsEnumerable(value, keys[i])) out.push(keys[i]);
  }
  return out;
}

function sameKeys(a, b, kind, strict, seen) {
  const list = kind === "isArrayBufferView";
  const keys = enumerableKeys(a, strict, list);
  if (keys.length !== enumerableKeys(b, strict, list).length) return false;
  for (let i = 0; i < keys.length; i++) if (!ObjectPrototypePropertyIsEnumerable(b, keys[i])) return false;
  for (let i = 0; i < keys.length; i++) if (!equal(a[keys[i]], b[keys[i]], strict, seen)) return false;
  return true;
}

const newSeen = () => {
  const map = new Map();
  return { __proto__: null, get: (k) => MapPrototypeGet(map, k), set: (k, v) => { MapPrototypeSet(map, k, v); } };
};

node.types = types;
node.deepEqual = (a, b, strict) => equal(a, b, strict, newSeen());
