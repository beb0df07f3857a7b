// node/buffer.js is the class Buffer of node:buffer: how buffers are made, compared and searched.

"use strict";

const {
  ArrayBufferIsView, ArrayBufferPrototypeGetByteLength, ArrayIsArray, NumberIsNaN, ObjectSetPrototypeOf,
  RangeError, ReflectGetPrototypeOf, SymbolToPrimitive, TypedArrayPrototypeFill,
  TypedArrayPrototypeGetBuffer, TypedArrayPrototypeGetByteLength, TypedArrayPrototypeGetByteOffset,
  TypedArrayPrototypeGetTag, TypedArrayPrototypeSet, Uint8Array, Uint8ArrayPrototype, lengthOf, subarray,
} = primordials;
const { isArrayBuffer, viewBytes } = internal;
const { checks, coded, outOfRange, put, wrongType, wrongValue } = internal.node;
const { byteLength, encodingOf, normal, toBytes } = internal.node.codec;

const kMaxLength = 9007199254740991;

class FastBuffer extends Uint8Array {
  constructor(source, offset, length) {
    super(source, offset, length);
  }
}

function Buffer(value, encodingOrOffset, length) {
  if (typeof value !== "number") return Buffer.from(value, encodingOrOffset, length);
  if (typeof encodingOrOffset === "string") throw wrongType("string", "of type string", value);
  return Buffer.alloc(value);
}
ObjectSetPrototypeOf(Buffer, Uint8Array);
const { prototype } = FastBuffer;
Buffer.prototype = prototype;
put(prototype, { constructor: Buffer }, false);
primordials.ObjectDefineProperty(Buffer, primordials.Symbol.species,
  { __proto__: null, get: () => FastBuffer, enumerable: false, configurable: true });

const isBytes = (value) => ArrayBufferIsView(value) && TypedArrayPrototypeGetTag(value) === "Uint8Array";

function isBuffer(value) {
  if (!isBytes(value)) return false;
  for (let p = ReflectGetPrototypeOf(value); p !== null; p = ReflectGetPrototypeOf(p)) if (p === prototype) return true;
  return false;
}

// over makes a Buffer over the memory of a Uint8Array.
function over(bytes) {
  return new FastBuffer(TypedArrayPrototypeGetBuffer(bytes), TypedArrayPrototypeGetByteOffset(bytes), lengthOf(bytes));
}

// copy makes a Buffer with a copy of a list of bytes.
function copy(list, n) {
  const out = new FastBuffer(n);
  if (isBytes(list)) TypedArrayPrototypeSet(out, list, 0);
  else for (let i = 0; i < n; i++) out[i] = list[i];
  return out;
}

const wanted = "of type string or an instance of Buffer, ArrayBuffer, or Array or an Array-like Object";

function fromArrayBuffer(buffer, offset, length) {
  if (offset === undefined) offset = 0;
  else {
    offset = +offset;
    if (NumberIsNaN(offset)) offset = 0;
  }
  const most = ArrayBufferPrototypeGetByteLength(buffer) - offset;
  if (most < 0) throw coded(RangeError, "ERR_BUFFER_OUT_OF_BOUNDS", '"offset" is outside of buffer bounds');
  if (length === undefined) length = most;
  else {
    length = +length;
    if (!(length > 0)) length = 0;
    else if (length > most) throw coded(RangeError, "ERR_BUFFER_OUT_OF_BOUNDS", '"length" is outside of buffer bounds');
  }
  return new FastBuffer(buffer, offset, length);
}

function fromObject(value) {
  if (value.length !== undefined || isArrayBuffer(value.buffer)) {
    if (typeof value.length !== "number") return new FastBuffer(0);
    return copy(value, value.length > 0 ? +value.length : 0);
  }
  if (value.type === "Buffer" && ArrayIsArray(value.data)) return copy(value.data, value.data.length);
  return undefined;
}

function from(value, encodingOrOffset, length) {
  if (typeof value === "string") return fromString(value, encodingOrOffset);
  if (typeof value === "object" && value !== null) {
    if (isArrayBuffer(value)) return fromArrayBuffer(value, encodingOrOffset, length);
    if (ArrayBufferIsView(value) && TypedArrayPrototypeGetTag(value) !== undefined) return copy(value, lengthOf(value));
    const of = value.valueOf && value.valueOf();
    if (of !== undefined && of !== null && of !== value && (typeof of === "string" || typeof of === "object")) {
      return Buffer.from(of, encodingOrOffset, length);
    }
    const made = fromObject(value);
    if (made !== undefined) return made;
    if (typeof value[SymbolToPrimitive] === "function") {
      const text = value[SymbolToPrimitive]("string");
      if (typeof text === "string") return fromString(text, encodingOrOffset);
    }
  }
  throw wrongType("first argument", wanted, value);
}

const fromString = (text, encoding) => {
  const name = typeof encoding === "string" && encoding !== "" ? encodingOf(encoding) : "utf8";
  const bytes = toBytes(text, name);
  return over(bytes);
};

function checkSize(size) {
  checks.number(size, "size");
  if (!(size >= 0 && size <= kMaxLength)) throw outOfRange("size", `>= 0 && <= ${kMaxLength}`, size);
}

function alloc(size, fill, encoding) {
  checkSize(size);
  const out = new FastBuffer(size);
  if (fill !== undefined && fill !== 0 && size > 0) fillBuffer(out, fill, undefined, undefined, encoding);
  return out;
}

function allocUnsafe(size) {
  checkSize(size);
  return new FastBuffer(size);
}

// fillBuffer is buf.fill().
function fillBuffer(bytes, value, offset, end, encoding) {
  if (typeof value === "string") {
    if (typeof offset === "string") {
      encoding = offset;
      offset = end = undefined;
    } else if (typeof end === "string") {
      encoding = end;
      end = undefined;
    }
    if (encoding !== undefined && encoding !== null) checks.string(encoding, "encoding");
    const name = encodingOf(encoding);
    const pattern = value === "" ? 0 : toBytes(value, name);
    if (pattern !== 0 && lengthOf(pattern) === 0) throw wrongValue("value", value);
    value = pattern;
  } else if (typeof value === "boolean") value = +value;
  if (offset === undefined) {
    offset = 0;
    end = lengthOf(bytes);
  } else {
    checks.integer(offset, "offset", 0);
    if (end === undefined) end = lengthOf(bytes);
    else checks.integer(end, "end", 0, lengthOf(bytes));
    if (offset >= end) return bytes;
  }
  if (!ArrayBufferIsView(value)) {
    TypedArrayPrototypeFill(bytes, +value & 255, offset, end);
    return bytes;
  }
  return repeat(bytes, viewBytes(value), offset, end);
}

function repeat(bytes, pattern, offset, end) {
  const n = lengthOf(pattern);
  if (n === 0) throw wrongValue("value", pattern);
  if (n === 1) TypedArrayPrototypeFill(bytes, pattern[0], offset, end);
  else for (let i = offset, k = 0; i < end; i++, k = k + 1 === n ? 0 : k + 1) bytes[i] = pattern[k];
  return bytes;
}

function compareBytes(a, b) {
  const n = lengthOf(a) < lengthOf(b) ? lengthOf(a) : lengthOf(b);
  for (let i = 0; i < n; i++) {
    if (a[i] !== b[i]) return a[i] < b[i] ? -1 : 1;
  }
  return lengthOf(a) === lengthOf(b) ? 0 : lengthOf(a) < lengthOf(b) ? -1 : 1;
}

const needBytes = (value, name) => {
  if (!isBytes(value)) throw wrongType(name, "an instance of Buffer or Uint8Array", value);
};

const statics = {
  poolSize: 8192,
  from(value, encodingOrOffset, length) { return from(value, encodingOrOffset, length); },
  of(...items) { return copy(items, items.length); },
  alloc(size, fill, encoding) { return alloc(size, fill, encoding); },
  allocUnsafe(size) { return allocUnsafe(size); },
  allocUnsafeSlow(size) { return allocUnsafe(size); },
  copyBytesFrom(view, offset, length) {
    if (!ArrayBufferIsView(view) || TypedArrayPrototypeGetTag(view) === undefined) {
      throw wrongType("view", "an instance of TypedArray", view);
    }
    const n = lengthOf(view);
    if (n === 0) return new FastBuffer(0);
    let start = 0;
    let end = n;
    if (offset !== undefined) {
      checks.integer(offset, "offset", 0);
      if (offset >= n) return new FastBuffer(0);
      start = offset;
    }
    if (length !== undefined) {
      checks.integer(length, "length", 0);
      end = start + length < n ? start + length : n;
    }
    const each = TypedArrayPrototypeGetByteLength(view) / n;
    return copy(subarray(viewBytes(view), start * each, end * each), (end - start) * each);
  },
  isBuffer(value) { return isBuffer(value); },
  isEncoding(encoding) { return typeof encoding === "string" && encoding.length !== 0 && normal(encoding) !== undefined; },
  byteLength(value, encoding) {
    if (typeof value === "string") {
      const name = normal(encoding);
      return byteLength(value, name === undefined ? "utf8" : name);
    }
    if (ArrayBufferIsView(value)) return lengthOf(viewBytes(value));
    if (isArrayBuffer(value)) return ArrayBufferPrototypeGetByteLength(value);
    throw wrongType("string", "of type string or an instance of Buffer or ArrayBuffer", value);
  },
  compare(a, b) {
    needBytes(a, "buf1");
    needBytes(b, "buf2");
    return compareBytes(a, b);
  },
  concat(list, length) {
    checks.array(list, "list");
    if (list.length === 0) return new FastBuffer(0);
    if (length === undefined) {
      length = 0;
      for (let i = 0; i < list.length; i++) if (list[i].length) length += list[i].length;
    } else checks.integer(length, "length", 0);
    const out = allocUnsafe(length);
    let at = 0;
    for (let i = 0; i < list.length; i++) {
      const part = list[i];
      needBytes(part, `list[${i}]`);
      if (at >= length) continue;
      const n = lengthOf(part) < length - at ? lengthOf(part) : length - at;
      TypedArrayPrototypeSet(out, n === lengthOf(part) ? part : subarray(part, 0, n), at);
      at += n;
    }
    return out;
  },
};
put(Buffer, statics);

function SlowBuffer(length) { return allocUnsafe(length); }
ObjectSetPrototypeOf(SlowBuffer.prototype, Uint8ArrayPrototype);
ObjectSetPrototypeOf(SlowBuffer, Uint8Array);

internal.node.bufferParts = {
  __proto__: null, Buffer, FastBuffer, SlowBuffer, compareBytes, copy, fillBuffer, isBuffer, isBytes, kMaxLength, needBytes, over,
  prototype,
};
