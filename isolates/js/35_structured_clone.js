// 35_structured_clone.js is structuredClone. V8's serializer does the walk (host.clone: v8x/clone.cc); what it asks about
// platform objects, which are ordinary objects to V8, is answered here, and buffers are transferred.

"use strict";

const {
  ArrayBufferPrototypeGetDetached, ArrayBufferPrototypeTransfer, List, ObjectDefineProperty, ObjectPrototype, SetPrototypeAdd,
  SetPrototypeHas, Set, TypeError,
} = primordials;
const {
  DOMException, defineOperation, isArrayBuffer, isObject, rawStack, requireArguments, toDictionary, toSequence,
} = internal;

// What host.clone asks; clone.cc has the same.
const ERROR = 0;
const IS_HOST = 1;
const COPY = 2;

function dataCloneError(message) {
  return new DOMException(message, "DataCloneError");
}

// isCopied: whether copy() makes the copy. Platform objects that cannot be cloned throw.
function isCopied(value) {
  if (internal.isDOMException(value) || internal.isBlob(value) || internal.isCryptoKey(value)) return true;
  if (internal.isPlatformObject(value)) throw dataCloneError(`${internal.inspectBrief(value)} could not be cloned`);
  return false;
}

function copy(value) {
  if (internal.isCryptoKey(value)) return internal.cloneCryptoKey(value);
  return internal.isBlob(value) ? copyBlob(value) : copyException(value);
}

function copyException(value) {
  const parts = internal.domExceptionParts(value);
  const out = new DOMException(parts.message, parts.name);
  ObjectDefineProperty(out, "stack",
    { __proto__: null, value: rawStack(value), writable: true, enumerable: false, configurable: true });
  return out;
}

function copyBlob(blob) {
  const bytes = internal.blobView(blob);
  const type = internal.blobType(blob);
  return internal.isFile(blob) ? internal.newFile(bytes, type, internal.fileName(blob), internal.fileModified(blob))
    : internal.newBlob(bytes, type);
}

// move detaches the buffers and returns those that have their memory now.
function move(transfer) {
  for (let i = 0; i < transfer.length; i++) {
    if (ArrayBufferPrototypeGetDetached(transfer[i])) throw dataCloneError("a buffer to transfer is detached");
  }
  const moved = new List();
  for (let i = 0; i < transfer.length; i++) moved[i] = ArrayBufferPrototypeTransfer(transfer[i]);
  return moved;
}

function clone(value, transfer) {
  if (!isObject(value) && typeof value !== "symbol" && transfer.length === 0) return value;
  return host.clone(value, transfer, ObjectPrototype, (question, about) => {
    switch (question) {
      case ERROR: return dataCloneError(about);
      case IS_HOST: return isCopied(about);
      case COPY: return copy(about);
      default: return move(transfer);
    }
  });
}

function checkTransfer(transfer) {
  const seen = new Set();
  for (let i = 0; i < transfer.length; i++) {
    if (!isArrayBuffer(transfer[i])) throw dataCloneError("a value to transfer is not transferable");
    if (SetPrototypeHas(seen, transfer[i])) throw dataCloneError("a value is transferred twice");
    SetPrototypeAdd(seen, transfer[i]);
  }
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
    checkTransfer(transfer);
    return clone(value, transfer);
  },
};
defineOperation("structuredClone", operations.structuredClone);
internal.structuredClone = (value) => clone(value, new List());
