// runtime/buffers.js converts ArrayBuffers and views as Web IDL says, and reads and copies their bytes.

"use strict";

const {
  ArrayBufferIsView, ArrayBufferPrototypeGetByteLength, ArrayBufferPrototypeGetResizable, DataViewPrototypeGetBuffer,
  DataViewPrototypeGetByteLength, DataViewPrototypeGetByteOffset, TypeError, TypedArrayPrototypeGetBuffer,
  TypedArrayPrototypeGetByteLength, TypedArrayPrototypeGetByteOffset, TypedArrayPrototypeGetTag, TypedArrayPrototypeSet,
  Uint8Array, lengthOf,
} = primordials;

function isArrayBuffer(value) {
  if (typeof value !== "object" || value === null) return false;
  try {
    ArrayBufferPrototypeGetByteLength(value);
    return true;
  } catch {
    return false;
  }
}

// isView and isBufferSource throw when the buffer is resizable. Web IDL accepts a resizable buffer only where a type
// allows it, and no type here allows it.
function isView(value) {
  if (!ArrayBufferIsView(value)) return false;
  checkFixed(TypedArrayPrototypeGetTag(value) === undefined ? DataViewPrototypeGetBuffer(value) : TypedArrayPrototypeGetBuffer(value));
  return true;
}

function isBufferSource(value) {
  if (isView(value)) return true;
  if (!isArrayBuffer(value)) return false;
  checkFixed(value);
  return true;
}

function checkFixed(buffer) {
  if (ArrayBufferPrototypeGetResizable(buffer)) throw new TypeError("a resizable ArrayBuffer is not taken here: copy its bytes with slice()");
}

// viewBytes returns a Uint8Array over the same memory as an ArrayBuffer or view.
function viewBytes(source) {
  if (!ArrayBufferIsView(source)) return new Uint8Array(source);
  if (TypedArrayPrototypeGetTag(source) !== undefined) {
    return new Uint8Array(TypedArrayPrototypeGetBuffer(source), TypedArrayPrototypeGetByteOffset(source),
      TypedArrayPrototypeGetByteLength(source));
  }
  return new Uint8Array(DataViewPrototypeGetBuffer(source), DataViewPrototypeGetByteOffset(source),
    DataViewPrototypeGetByteLength(source));
}

// copyBytes returns a new Uint8Array with a copy of the bytes of an ArrayBuffer or view. A detached one reads as
// empty.
function copyBytes(source) {
  let view;
  try {
    view = viewBytes(source);
  } catch {
    return new Uint8Array(0);
  }
  return new Uint8Array(view);
}

// liveBytes is viewBytes for input from handler code. A detached buffer reads as empty.
function liveBytes(source) {
  try {
    return viewBytes(source);
  } catch {
    return new Uint8Array(0);
  }
}

function toBufferSource(value, what) {
  if (!isBufferSource(value)) throw new TypeError(`${what} is not an ArrayBuffer or a view of one`);
  return value;
}

// concatBytes returns the bytes of all parts, a List of Uint8Arrays.
function concatBytes(parts) {
  let size = 0;
  for (let i = 0; i < parts.length; i++) size += lengthOf(parts[i]);
  const out = new Uint8Array(size);
  let at = 0;
  for (let i = 0; i < parts.length; i++) {
    TypedArrayPrototypeSet(out, parts[i], at);
    at += lengthOf(parts[i]);
  }
  return out;
}
primordials.ObjectAssign(internal, { concatBytes, copyBytes, isArrayBuffer, isBufferSource, isView, liveBytes, toBufferSource, viewBytes });
