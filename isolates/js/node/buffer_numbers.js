// node/buffer_numbers.js has the methods of Buffers that read and write numbers.

"use strict";

const { BigInt, Float32Array, Float64Array, NumberIsInteger, RangeError, Uint8Array, lengthOf } = primordials;
const { coded, outOfRange, put, wrongType } = internal.node;
const { isBytes, prototype } = internal.node.bufferParts;

const eight = new Uint8Array(8);
const buffer = primordials.TypedArrayPrototypeGetBuffer(eight);
const single = new Float32Array(buffer, 0, 1);
const double = new Float64Array(buffer, 0, 1);

function badOffset(value, most, name = "offset") {
  if (typeof value !== "number") throw wrongType(name, "of type number", value);
  if (!NumberIsInteger(value)) throw outOfRange(name, "an integer", value);
  if (most < 0) throw coded(RangeError, "ERR_BUFFER_OUT_OF_BOUNDS", "Attempt to access memory outside buffer bounds");
  throw outOfRange(name, `>= ${name === "byteLength" ? 1 : 0} && <= ${most}`, value);
}

// place checks an offset for a number of that many bytes.
function place(self, offset, size) {
  if (!isBytes(self)) throw wrongType("this", "an instance of Buffer", self);
  const most = lengthOf(self) - size;
  if (typeof offset !== "number" || !NumberIsInteger(offset) || offset < 0 || offset > most) badOffset(offset, most);
  return offset;
}

function checkBytes(size) {
  if (typeof size !== "number") throw wrongType("byteLength", "of type number", size);
  if (!NumberIsInteger(size) || size < 1 || size > 6) badOffset(size, 6, "byteLength");
}

function readUint(bytes, at, size, little) {
  let value = 0;
  for (let i = 0; i < size; i++) value = value * 256 + bytes[little ? at + size - 1 - i : at + i];
  return value;
}

function readInt(bytes, at, size, little) {
  const value = readUint(bytes, at, size, little);
  return value >= 2 ** (size * 8 - 1) ? value - 2 ** (size * 8) : value;
}

// refuse is the error for a number that does not fit.
function refuse(value, least, most, size) {
  const n = typeof least === "bigint" ? "n" : "";
  const range = size > 3 || n !== ""
    ? least === 0 || least === 0n ? `>= 0${n} and < 2${n} ** ${size * 8}${n}`
      : `>= -(2${n} ** ${size * 8 - 1}${n}) and < 2${n} ** ${size * 8 - 1}${n}`
    : `>= ${least} and <= ${most}`;
  throw outOfRange("value", range, value);
}

function writeInt(self, value, offset, size, little, signed) {
  value = +value;
  const at = place(self, offset, size);
  const least = signed ? -(2 ** (size * 8 - 1)) : 0;
  const most = signed ? 2 ** (size * 8 - 1) - 1 : 2 ** (size * 8) - 1;
  if (value < least || value > most) refuse(value, least, most, size);
  put8(self, at, size, little, value < 0 ? value + 2 ** (size * 8) : value);
  return at + size;
}

function put8(bytes, at, size, little, value) {
  for (let i = 0; i < size; i++) {
    bytes[little ? at + i : at + size - 1 - i] = value;
    value = primordials.MathFloor(value / 256);
  }
}

function readBig(self, offset, little, signed) {
  const at = place(self, offset, 8);
  const low = BigInt(readUint(self, little ? at : at + 4, 4, little));
  const high = BigInt((signed ? readInt : readUint)(self, little ? at + 4 : at, 4, little));
  return (high << 32n) + low;
}

function writeBig(self, value, offset, little, signed) {
  const least = signed ? -(2n ** 63n) : 0n;
  const most = signed ? 2n ** 63n - 1n : 2n ** 64n - 1n;
  if (value < least || value > most) refuse(value, least, most, 8);
  const at = place(self, offset, 8);
  if (typeof value !== "bigint") {
    throw new primordials.TypeError("Cannot mix BigInt and other types, use explicit conversions");
  }
  const bits = primordials.BigIntAsUintN(64, value);
  put8(self, little ? at : at + 4, 4, little, primordials.Number(bits & 0xffffffffn));
  put8(self, little ? at + 4 : at, 4, little, primordials.Number(bits >> 32n));
  return at + 8;
}

function readFloat(self, offset, view, size, little) {
  const at = place(self, offset, size);
  for (let i = 0; i < size; i++) eight[i] = self[little ? at + i : at + size - 1 - i];
  return view[0];
}

function writeFloat(self, value, offset, view, size, little) {
  value = +value;
  const at = place(self, offset, size);
  view[0] = value;
  for (let i = 0; i < size; i++) self[little ? at + i : at + size - 1 - i] = eight[i];
  return at + size;
}

function wrongOffset(offset) {
  if (offset === undefined) throw wrongType("offset", "of type number", offset);
}

// define gives the prototype the methods of integers of this size and order. Node has two spellings of each.
function define(size, little) {
  const order = size === 1 ? "" : little ? "LE" : "BE";
  const bits = `${size * 8}${order}`;
  const methods = {
    [`readUInt${bits}`](offset = 0) { return readUint(this, place(this, offset, size), size, little); },
    [`readInt${bits}`](offset = 0) { return readInt(this, place(this, offset, size), size, little); },
    [`writeUInt${bits}`](value, offset = 0) { return writeInt(this, value, offset, size, little, false); },
    [`writeInt${bits}`](value, offset = 0) { return writeInt(this, value, offset, size, little, true); },
  };
  put(prototype, methods);
  put(prototype, { [`readUint${bits}`]: methods[`readUInt${bits}`], [`writeUint${bits}`]: methods[`writeUInt${bits}`] });
}

// defineOrder gives the prototype the methods of other numbers in this order.
function defineOrder(order, little) {
  const methods = {
    [`readUInt${order}`](offset, size) {
      wrongOffset(offset);
      checkBytes(size);
      return readUint(this, place(this, offset, size), size, little);
    },
    [`readInt${order}`](offset, size) {
      wrongOffset(offset);
      checkBytes(size);
      return readInt(this, place(this, offset, size), size, little);
    },
    [`writeUInt${order}`](value, offset, size) {
      checkBytes(size);
      return writeInt(this, value, offset, size, little, false);
    },
    [`writeInt${order}`](value, offset, size) {
      checkBytes(size);
      return writeInt(this, value, offset, size, little, true);
    },
    [`readBigUInt64${order}`](offset = 0) { return readBig(this, offset, little, false); },
    [`readBigInt64${order}`](offset = 0) { return readBig(this, offset, little, true); },
    [`writeBigUInt64${order}`](value, offset = 0) { return writeBig(this, value, offset, little, false); },
    [`writeBigInt64${order}`](value, offset = 0) { return writeBig(this, value, offset, little, true); },
    [`readFloat${order}`](offset = 0) { return readFloat(this, offset, single, 4, little); },
    [`readDouble${order}`](offset = 0) { return readFloat(this, offset, double, 8, little); },
    [`writeFloat${order}`](value, offset = 0) { return writeFloat(this, value, offset, single, 4, little); },
    [`writeDouble${order}`](value, offset = 0) { return writeFloat(this, value, offset, double, 8, little); },
  };
  put(prototype, methods);
  put(prototype, {
    [`readUint${order}`]: methods[`readUInt${order}`], [`writeUint${order}`]: methods[`writeUInt${order}`],
    [`readBigUint64${order}`]: methods[`readBigUInt64${order}`], [`writeBigUint64${order}`]: methods[`writeBigUInt64${order}`],
  });
}

define(1, false);
define(2, true);
define(2, false);
define(4, true);
define(4, false);
defineOrder("LE", true);
defineOrder("BE", false);
