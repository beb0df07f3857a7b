// node/buffer_methods.js has the methods of Buffers except those that read and write numbers.

"use strict";

const {
  ArrayBufferIsView, MathTrunc, NumberIsNaN, RangeError, StringPrototypeSlice, Symbol, TypeError, TypedArrayPrototypeGetBuffer, TypedArrayPrototypeGetByteOffset, TypedArrayPrototypeIndexOf,
  TypedArrayPrototypeSet, lengthOf, subarray,
} = primordials;
const { appendArray, viewBytes } = internal;
const { checks, coded, outOfRange, put, wrongType } = internal.node;
const { encodingOf, toBytes, toText, writeText } = internal.node.codec;
const { FastBuffer, compareBytes, fillBuffer, isBytes, needBytes, prototype } = internal.node.bufferParts;

const kInspect = primordials.SymbolFor("nodejs.util.inspect.custom");

// bytesOf returns this of a method as a Uint8Array.
function bytesOf(self) {
  if (!isBytes(self)) throw wrongType("this", "an instance of Buffer", self);
  return self;
}

// strictEncoding is the encoding of toString(), which must be a name if it is there.
function strictEncoding(encoding) {
  if (encoding === null || encoding === "") throw coded(TypeError, "ERR_UNKNOWN_ENCODING", `Unknown encoding: ${encoding}`);
  return encodingOf(encoding);
}

// clamped is an index as Array.prototype.slice reads it.
function clamped(value, n, missing) {
  if (value === undefined) return missing;
  const i = MathTrunc(+value) || 0;
  return i < 0 ? (i + n < 0 ? 0 : i + n) : i > n ? n : i;
}

// bounded is an index from 0 to n.
function bounded(value, n, missing) {
  if (value === undefined) return missing;
  const i = MathTrunc(+value) || 0;
  return i < 0 ? 0 : i > n ? n : i;
}

function slice(self, start, end) {
  const n = lengthOf(bytesOf(self));
  const from = clamped(start, n, 0);
  const to = clamped(end, n, n);
  return new FastBuffer(TypedArrayPrototypeGetBuffer(self), TypedArrayPrototypeGetByteOffset(self) + from, to > from ? to - from : 0);
}

// find returns the place of the bytes that are searched, from a place on in a direction.
function find(bytes, what, from, forwards) {
  const n = lengthOf(bytes);
  const m = lengthOf(what);
  if (m === 0) return from > n ? n : from;
  if (m > n) return -1;
  if (!forwards && from > n - m) from = n - m;
  for (let at = from; at >= 0 && at <= n - m; at += forwards ? 1 : -1) {
    if (forwards) {
      at = TypedArrayPrototypeIndexOf(bytes, what[0], at);
      if (at === -1 || at > n - m) return -1;
    }
    let k = 0;
    while (k < m && bytes[at + k] === what[k]) k++;
    if (k === m) return at;
  }
  return -1;
}

function search(self, value, offset, encoding, forwards) {
  const bytes = bytesOf(self);
  const n = lengthOf(bytes);
  if (typeof offset === "string") {
    encoding = offset;
    offset = undefined;
  }
  let from = +offset;
  if (NumberIsNaN(from)) from = forwards ? 0 : n;
  from = MathTrunc(from);
  if (from < 0) from += n;
  if (from < 0) {
    if (!forwards && value !== "") return -1;
    from = 0;
  }
  if (typeof value === "number") {
    if (from >= n) {
      if (forwards) return -1;
      from = n - 1;
    }
    return find(bytes, new FastBuffer([value & 255]), from, forwards);
  }
  let what = value;
  if (typeof value === "string") what = toBytes(value, encodingOf(encoding));
  else if (!isBytes(value)) {
    throw wrongType("value", "one of type number or string or an instance of Buffer or Uint8Array", value);
  }
  return find(bytes, what, from, forwards);
}

function swap(self, size) {
  const bytes = bytesOf(self);
  const n = lengthOf(bytes);
  if (n % size !== 0) throw coded(RangeError, "ERR_INVALID_BUFFER_SIZE", `Buffer size must be a multiple of ${size * 8}-bits`);
  for (let i = 0; i < n; i += size) {
    for (let k = 0; k < size / 2; k++) {
      const byte = bytes[i + k];
      bytes[i + k] = bytes[i + size - 1 - k];
      bytes[i + size - 1 - k] = byte;
    }
  }
  return self;
}

function text(self, encoding, start, end) {
  const n = lengthOf(bytesOf(self));
  if (start === undefined && end === undefined) return toText(self, encoding);
  const from = bounded(start, n, 0);
  const to = bounded(end, n, n);
  return to <= from ? "" : toText(subarray(self, from, to), encoding);
}

function write(self, value, offset, length, encoding) {
  const n = lengthOf(bytesOf(self));
  if (typeof offset === "string" && length === undefined) {
    encoding = offset;
    offset = undefined;
  }
  checks.string(value, "argument");
  if (offset === undefined) {
    offset = 0;
    if (length !== undefined) encoding = length = undefined; // as Node does
  } else {
    checks.integer(offset, "offset", 0, n);
    if (typeof length === "string") {
      encoding = length;
      length = undefined;
    }
  }
  if (length === undefined) length = n - offset;
  else {
    checks.integer(length, "length", 0, n);
    if (length > n - offset) length = n - offset;
  }
  return writeText(subarray(self, offset, offset + length), value, encodingOf(encoding));
}

function copyTo(self, target, targetStart, sourceStart, sourceEnd) {
  const source = bytesOf(self);
  if (!ArrayBufferIsView(target)) throw wrongType("target", "an instance of Buffer or Uint8Array", target);
  const to = viewBytes(target);
  const start = targetStart === undefined ? 0 : whole(targetStart, "targetStart", 0);
  const from = sourceStart === undefined ? 0 : whole(sourceStart, "sourceStart", 0, lengthOf(source));
  const end = sourceEnd === undefined ? lengthOf(source) : whole(sourceEnd, "sourceEnd", 0);
  if (start >= lengthOf(to) || from >= end) return 0;
  let n = end - from;
  if (n > lengthOf(to) - start) n = lengthOf(to) - start;
  if (n > lengthOf(source) - from) n = lengthOf(source) - from;
  if (n > 0) TypedArrayPrototypeSet(to, subarray(source, from, from + n), start);
  return n > 0 ? n : 0;
}

function whole(value, name, least, most = Infinity) {
  const i = MathTrunc(+value) || 0;
  if (i < least || i > most) throw outOfRange(name, most === Infinity ? `>= ${least}` : `>= ${least} && <= ${most}`, i);
  return i;
}

const methods = {
  copy(target, targetStart, sourceStart, sourceEnd) { return copyTo(this, target, targetStart, sourceStart, sourceEnd); },
  toString(encoding, start, end) {
    if (arguments.length === 0) return toText(bytesOf(this), "utf8");
    return text(this, encoding === undefined ? "utf8" : strictEncoding(encoding), start, end);
  },
  equals(other) {
    needBytes(other, "otherBuffer");
    return this === other || (lengthOf(bytesOf(this)) === lengthOf(other) && compareBytes(this, other) === 0);
  },
  inspect() { return show(this); },
  [kInspect]() { return show(this); },
  compare(target, targetStart, targetEnd, sourceStart, sourceEnd) {
    needBytes(target, "target");
    const n = lengthOf(bytesOf(this));
    const m = lengthOf(target);
    if (targetStart !== undefined) checks.integer(targetStart, "targetStart", 0);
    if (targetEnd !== undefined) checks.integer(targetEnd, "targetEnd", 0, m);
    if (sourceStart !== undefined) checks.integer(sourceStart, "sourceStart", 0);
    if (sourceEnd !== undefined) checks.integer(sourceEnd, "sourceEnd", 0, n);
    const start = targetStart ?? 0;
    const end = targetEnd ?? m;
    const from = sourceStart ?? 0;
    const to = sourceEnd ?? n;
    if (from >= to) return start >= end ? 0 : -1;
    if (start >= end) return 1;
    return compareBytes(subarray(this, from, to), subarray(target, start, end));
  },
  indexOf(value, offset, encoding) { return search(this, value, offset, encoding, true); },
  lastIndexOf(value, offset, encoding) { return search(this, value, offset, encoding, false); },
  includes(value, offset, encoding) { return search(this, value, offset, encoding, true) !== -1; },
  fill(value, offset, end, encoding) { return fillBuffer(bytesOf(this), value, offset, end, encoding); },
  write(value, offset, length, encoding) { return write(this, value, offset, length, encoding); },
  toJSON() {
    const data = [];
    for (let i = 0; i < lengthOf(bytesOf(this)); i++) appendArray(data, this[i]);
    return { type: "Buffer", data };
  },
  subarray(start, end) { return slice(this, start, end); },
  slice(start, end) { return slice(this, start, end); },
  swap16() { return swap(this, 2); },
  swap32() { return swap(this, 4); },
  swap64() { return swap(this, 8); },
};

function show(self) {
  const n = lengthOf(bytesOf(self));
  const most = internal.node.inspectMaxBytes;
  const hex = toText(subarray(self, 0, n < most ? n : most), "hex");
  let out = "";
  for (let i = 0; i < hex.length; i += 2) out += ` ${StringPrototypeSlice(hex, i, i + 2)}`;
  const more = n - most;
  if (more > 0) out += ` ... ${more} more byte${more > 1 ? "s" : ""}`;
  return `<${self.constructor.name}${out}>`;
}
internal.node.inspectMaxBytes = 50;

// asciiSlice, utf8Write and others, by which packages reach the encodings without looking them up.
const names = ["ascii", "base64", "base64url", "hex", "latin1", "utf8", "ucs2", "utf16le"];
for (let i = 0; i < names.length; i++) {
  const encoding = encodingOf(names[i]);
  put(prototype, {
    [`${names[i]}Slice`](start, end) { return text(this, encoding, start, end); },
    [`${names[i]}Write`](value, offset, length) { return write(this, value, offset, length, encoding); },
  });
}
put(prototype, methods);
put(prototype, {
  toLocaleString: methods.toString,
  get parent() { return isBytes(this) ? TypedArrayPrototypeGetBuffer(this) : undefined; },
  get offset() { return isBytes(this) ? TypedArrayPrototypeGetByteOffset(this) : undefined; },
});
