// runtime/inspect_shapes.js has the built-in kinds of object for inspect: their prefix, brackets and contents.

"use strict";

const {
  ArrayBufferIsView, ArrayBufferPrototypeGetByteLength, ArrayIsArray, DataViewPrototypeGetBuffer, DataViewPrototypeGetByteLength,
  DataViewPrototypeGetByteOffset, BigIntPrototypeValueOf, BooleanPrototypeValueOf,
  DatePrototypeGetTime, DatePrototypeToISOString, FunctionPrototypeToString, List, MapIteratorPrototypeNext,
  MapPrototypeEntries, MapPrototypeGetSize, MathMin, NumberIsNaN, NumberPrototypeValueOf,
  ReflectGetOwnPropertyDescriptor, ReflectGetPrototypeOf, ReflectOwnKeys, RegExpPrototypeGetFlags, RegExpPrototypeGetGlobal,
  RegExpPrototypeGetSource, SetIteratorPrototypeNext, SetPrototypeGetSize, SetPrototypeValues,
  StringPrototypeSlice, StringPrototypeStartsWith, StringPrototypeValueOf,
  SymbolPrototypeToString, SymbolPrototypeValueOf, SymbolToStringTag, TypedArrayPrototypeGetLength,
  TypedArrayPrototypeGetTag, Uint8Array, WeakMapPrototypeHas, WeakRefPrototypeDeref, WeakSetPrototypeHas,
} = primordials;
const { dataProperty, describe, describers, isArrayBuffer, isError } = internal;
const {
  MAX_ITEMS, MAX_KEYS, Shape, attempt, className, format, functionName, isIdentifier, isShown, ownValue, primitive, promiseDetails, quote,
} = internal.inspectParts;

function describeShape(ctx, value) {
  const shape = new Shape();
  const name = className(value);
  shape.name = name === null ? "Object: null prototype" : name;
  if (typeof value === "function") return functionShape(shape, value);
  if (ArrayIsArray(value)) return listShape(shape, value.length, "Array");
  const tag = TypedArrayPrototypeGetTag(value);
  if (tag !== undefined) return listShape(shape, TypedArrayPrototypeGetLength(value), "");
  if (isError(value)) return errorShape(shape, value);
  if (collectionShape(shape, value) || atomShape(shape, value)) return shape;
  shape.prefix = name === "Object" ? "" : name === null ? "[Object: null prototype]" : name;
  const own = ReflectGetOwnPropertyDescriptor(value, SymbolToStringTag);
  const kind = own !== undefined && own.enumerable ? "" : dataProperty(value, SymbolToStringTag);
  if (typeof kind === "string" && kind !== "" && kind !== name) {
    shape.prefix = `${shape.prefix === "" ? "Object" : shape.prefix} [${StringPrototypeSlice(kind, 0, 128)}]`;
  }
  return shape;
}

function functionShape(shape, value) {
  const name = functionName(value);
  const source = StringPrototypeSlice(FunctionPrototypeToString(value), 0, 6);
  const kind = StringPrototypeStartsWith(source, "class") ? "class" : shape.name || "Function";
  shape.leaf = kind === "class" ? `[class ${name || "(anonymous)"}${superclass(value)}]` : `[${kind}${name === "" ? " (anonymous)" : `: ${name}`}]`;
  shape.prefix = shape.leaf;
  return shape;
}

function superclass(value) {
  const parent = ReflectGetPrototypeOf(value);
  if (parent === null) return " extends null";
  const name = typeof parent === "function" ? functionName(parent) : "";
  return name === "" ? "" : ` extends ${name}`;
}

function listShape(shape, length, plain) {
  shape.open = "[";
  shape.close = "]";
  shape.skipIndices = true;
  shape.size = length;
  shape.wide = length > MAX_KEYS;
  if (shape.name !== plain) shape.prefix = `${shape.name}(${length})`;
  return shape;
}

function errorShape(shape, value) {
  shape.kind = "error";
  const described = describe(value);
  const { text, stack } = described;
  shape.leaf = stack === "" ? `[${text}]` : stack;
  // V8 writes the first line of the stack when it makes the error. If code sets the message later, inspect shows the
  // later one.
  if (stack !== "" && described.message !== "" && !primordials.StringPrototypeIncludes(stack, described.message)) {
    shape.leaf = `${text}\n${stack}`;
  }
  shape.prefix = shape.leaf;
  const cause = ReflectGetOwnPropertyDescriptor(value, "cause");
  if (cause !== undefined && !cause.enumerable) shape.extra = "cause";
  const errors = ReflectGetOwnPropertyDescriptor(value, "errors");
  if (errors !== undefined && !errors.enumerable) shape.extra = shape.extra === "" ? "errors" : "both";
  return shape;
}

function collectionShape(shape, value) {
  let size = attempt(MapPrototypeGetSize, value);
  if (size !== undefined) {
    shape.prefix = `${shape.name}(${size})`;
    shape.size = size;
    shape.kind = "map";
    return true;
  }
  size = attempt(SetPrototypeGetSize, value);
  if (size !== undefined) {
    shape.prefix = `${shape.name}(${size})`;
    shape.size = size;
    shape.kind = "set";
    return true;
  }
  shape.size = 1;
  if (isArrayBuffer(value)) {
    shape.prefix = shape.name;
    shape.kind = "buffer";
    return true;
  }
  if (ArrayBufferIsView(value)) {
    shape.prefix = shape.name;
    shape.kind = "fields";
    shape.data = viewFields(value);
    return true;
  }
  const state = promiseDetails === undefined ? undefined : promiseDetails(value);
  if (state !== undefined && state !== null) {
    shape.prefix = shape.name;
    shape.kind = "promise";
    shape.data = state;
    return true;
  }
  for (let i = 0; i < describers.length; i++) {
    if (!describers[i].is(value)) continue;
    shape.prefix = shape.name;
    shape.kind = describers[i].pairs ? "pairs" : "fields";
    shape.data = describers[i].fields(value);
    shape.size = shape.data.length;
    return true;
  }
  shape.size = 0;
  return false;
}

// viewFields returns the fields of a DataView. If the buffer is detached, it returns only the buffer.
function viewFields(value) {
  const length = attempt(DataViewPrototypeGetByteLength, value);
  const buffer = DataViewPrototypeGetBuffer(value);
  return length === undefined ? ["buffer", buffer]
    : ["byteLength", length, "byteOffset", DataViewPrototypeGetByteOffset(value), "buffer", buffer];
}

// atomShape sets the shape of values that are written as one word: dates, regular expressions, boxed primitives, weak
// collections.
function atomShape(shape, value) {
  const time = attempt(DatePrototypeGetTime, value);
  if (time !== undefined) shape.leaf = NumberIsNaN(time) ? "Invalid Date" : DatePrototypeToISOString(value);
  else if (attempt(RegExpPrototypeGetGlobal, value) !== undefined) {
    shape.leaf = `/${RegExpPrototypeGetSource(value)}/${attempt(RegExpPrototypeGetFlags, value) ?? ""}`;
  } else if (!boxed(shape, value) && !weak(shape, value)) return false;
  shape.prefix = shape.leaf;
  return true;
}

const noKey = {};

function weak(shape, value) {
  if (attempt((v) => WeakMapPrototypeHas(v, noKey), value) !== undefined) shape.leaf = "WeakMap { <items unknown> }";
  else if (attempt((v) => WeakSetPrototypeHas(v, noKey), value) !== undefined) shape.leaf = "WeakSet { <items unknown> }";
  else if (attempt((v) => [WeakRefPrototypeDeref(v)], value) !== undefined) shape.leaf = "WeakRef { <ref> }";
  else return false;
  return true;
}

function boxed(shape, value) {
  const kinds = [["Number", NumberPrototypeValueOf], ["String", StringPrototypeValueOf], ["Boolean", BooleanPrototypeValueOf],
    ["BigInt", BigIntPrototypeValueOf], ["Symbol", SymbolPrototypeValueOf]];
  for (let i = 0; i < kinds.length; i++) {
    const inner = attempt(kinds[i][1], value);
    if (inner === undefined) continue;
    shape.leaf = `[${kinds[i][0]}: ${primitive(inner)}]`;
    if (i === 1) {
      shape.skipIndices = true;
      shape.wide = inner.length > MAX_KEYS;
    }
    return true;
  }
  return false;
}

function fill(ctx, value, shape, level) {
  const { items } = shape;
  if (shape.open === "[") fillList(ctx, value, items, level);
  else if (shape.kind === "map") fillMap(ctx, value, items, level);
  else if (shape.kind === "set") fillSet(ctx, value, items, level);
  else if (shape.kind === "buffer") fillBuffer(value, items);
  else if (shape.kind === "promise") fillPromise(ctx, shape.data, items, level);
  else if (shape.kind === "pairs") {
    for (let i = 0; i < shape.data.length && ctx.left > 0; i += 2) {
      items[items.length] = `${format(ctx, shape.data[i], level + 1)} => ${format(ctx, shape.data[i + 1], level + 1)}`;
    }
  } else if (shape.kind === "fields") {
    for (let i = 0; i < shape.data.length; i += 2) {
      items[items.length] = `${keyText(shape.data[i])}: ${format(ctx, shape.data[i + 1], level + 1)}`;
    }
  }
  fillKeys(ctx, value, shape, level);
}

function more(items, left, what = "item") {
  if (left > 0) items[items.length] = `... ${left} more ${what}${left === 1 ? "" : "s"}`;
}

function fillList(ctx, value, items, level) {
  const length = ArrayIsArray(value) ? value.length : TypedArrayPrototypeGetLength(value);
  let i = 0;
  for (let shown = 0; i < length && shown < MAX_ITEMS && ctx.left > 0; i++, shown++) {
    const descriptor = ReflectGetOwnPropertyDescriptor(value, `${i}`);
    if (descriptor !== undefined) {
      items[items.length] = propertyText(ctx, descriptor, level);
      continue;
    }
    let run = 1;
    while (i + run < length && run < 100000 && ReflectGetOwnPropertyDescriptor(value, `${i + run}`) === undefined) run++;
    items[items.length] = `<${run} empty item${run === 1 ? "" : "s"}>`;
    i += run - 1;
    if (run === 100000) return;
  }
  more(items, length - i);
}

function fillMap(ctx, value, items, level) {
  const iterator = MapPrototypeEntries(value);
  for (let n = 0; ; n++) {
    const step = MapIteratorPrototypeNext(iterator);
    if (step.done) return;
    if (n >= MAX_ITEMS || ctx.left <= 0) return more(items, MapPrototypeGetSize(value) - n);
    items[items.length] = `${format(ctx, step.value[0], level + 1)} => ${format(ctx, step.value[1], level + 1)}`;
  }
}

function fillSet(ctx, value, items, level) {
  const iterator = SetPrototypeValues(value);
  for (let n = 0; ; n++) {
    const step = SetIteratorPrototypeNext(iterator);
    if (step.done) return;
    if (n >= MAX_ITEMS || ctx.left <= 0) return more(items, SetPrototypeGetSize(value) - n);
    items[items.length] = format(ctx, step.value, level + 1);
  }
}

function fillBuffer(value, items) {
  const length = ArrayBufferPrototypeGetByteLength(value);
  let text = "";
  if (!primordials.ArrayBufferPrototypeGetDetached(value)) {
    const bytes = new Uint8Array(value, 0, MathMin(length, 50));
    for (let i = 0; i < MathMin(length, 50); i++) {
      text += (i === 0 ? "" : " ") + (bytes[i] < 16 ? "0" : "") + primordials.NumberPrototypeToString(bytes[i], 16);
    }
  }
  if (length > 50) text += ` ... ${length - 50} more byte${length === 51 ? "" : "s"}`;
  items[0] = `[Uint8Contents]: <${text}>`;
  items[1] = `byteLength: ${length}`;
}

function fillPromise(ctx, details, items, level) {
  if (details[0] === 0) items[0] = "<pending>";
  else items[0] = (details[0] === 2 ? "<rejected> " : "") + format(ctx, details[1], level + 1);
}

function keyText(key) {
  if (typeof key === "symbol") return `[${SymbolPrototypeToString(key)}]`;
  return isIdentifier(key) ? key : quote(key);
}

function propertyText(ctx, descriptor, level) {
  if (primordials.ObjectPrototypeHasOwnProperty(descriptor, "value")) return format(ctx, ownValue(descriptor), level + 1);
  ctx.left -= 10;
  if (descriptor.get === undefined) return "[Setter]";
  return descriptor.set === undefined ? "[Getter]" : "[Getter/Setter]";
}

function fillKeys(ctx, value, shape, level) {
  if (shape.wide) return;
  const { items } = shape;
  const keys = ReflectOwnKeys(value);
  let shown = 0;
  for (let i = 0; i < keys.length; i++) {
    const key = keys[i];
    if (!isShown(key, shape)) continue;
    const descriptor = ReflectGetOwnPropertyDescriptor(value, key);
    const extra = (key === "cause" && (shape.extra === "cause" || shape.extra === "both")) ||
      (key === "errors" && (shape.extra === "errors" || shape.extra === "both"));
    if (descriptor === undefined || !(descriptor.enumerable || extra)) continue;
    if (shown++ >= MAX_ITEMS || ctx.left <= 0) {
      more(items, keys.length - i, "key");
      return;
    }
    const text = extra && !descriptor.enumerable ? `[${key}]` : keyText(key);
    ctx.left -= text.length;
    items[items.length] = `${text}: ${propertyText(ctx, descriptor, level)}`;
  }
}

internal.setInspectShape(describeShape, fill);
