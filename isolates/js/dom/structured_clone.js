// dom/structured_clone.js is structuredClone, and the clones that service calls send to other contexts. V8's serializer
// walks the value (host.clone, host.serialize: v8x/clone.cc). For V8,
// platform objects are ordinary objects, so it asks the code here about them. The code here also transfers buffers.

"use strict";

const {
  ArrayBufferPrototypeGetDetached, ArrayBufferPrototypeTransfer, List, Map, MapPrototypeGet, MapPrototypeHas, MapPrototypeSet,
  ObjectDefineProperty, ObjectPrototype, SetPrototypeAdd, SetPrototypeHas, Set, StringPrototypeEndsWith, StringPrototypeStartsWith,
  TypeError, sealedProto,
} = primordials;
const {
  DOMException, checkGlobal, defineOperation, isArrayBuffer, isObject, rawStack, requireArguments, toDictionary, toSequence,
} = internal;

// These constants are the questions of host.clone. clone.cc has the same values.
const ERROR = 0;
const IS_HOST = 1;
const COPY = 2;

function dataCloneError(message) {
  return new DOMException(message, "DataCloneError");
}

// Transfer is a transfer list, sorted by kind. A new port or stream replaces each transferred one. The code makes it
// before the clone.
class Transfer {
  home; // the Home of the new ports, or null
  buffers = new List();
  objects = new List();
  made = new List(); // the replacement for each object
  madePorts = new List();
  byObject = new Map();
  constructor(home) {
    this.home = home;
  }
}
sealedProto(Transfer);

// isCopied reports whether copy() makes the copy. It throws for platform objects that cannot be cloned.
function isCopied(value, transfer) {
  if (internal.isDOMException(value) || internal.isBlob(value) || internal.isCryptoKey(value)) return true;
  if (transfer !== null && MapPrototypeHas(transfer.byObject, value)) return true;
  if (internal.isPlatformObject(value)) throw dataCloneError(`${internal.inspectBrief(value)} could not be cloned`);
  return false;
}

function copy(value, transfer) {
  if (transfer !== null && MapPrototypeHas(transfer.byObject, value)) return MapPrototypeGet(transfer.byObject, value);
  if (internal.isCryptoKey(value)) return internal.cloneCryptoKey(value);
  return internal.isBlob(value) ? copyBlob(value) : copyException(value);
}

function copyException(value) {
  const parts = internal.domExceptionParts(value);
  const out = internal.copyQuotaError(value, parts.message) ?? new DOMException(parts.message, parts.name);
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

// move detaches the buffers and returns new buffers that have their memory.
function move(transfer) {
  for (let i = 0; i < transfer.length; i++) {
    if (ArrayBufferPrototypeGetDetached(transfer[i])) throw dataCloneError("a buffer to transfer is detached");
  }
  const moved = new List();
  for (let i = 0; i < transfer.length; i++) moved[i] = ArrayBufferPrototypeTransfer(transfer[i]);
  return moved;
}

const nothing = new List();
const UNCLONED = " could not be cloned.";

// withoutSource returns V8's message without the source of a function. V8 names functions by their source.
function withoutSource(message) {
  if (!StringPrototypeEndsWith(message, UNCLONED)) return message;
  const named = StringPrototypeStartsWith(message, "#<") || StringPrototypeStartsWith(message, "[object ") || StringPrototypeStartsWith(message, "Symbol(");
  return named ? message : `a function${UNCLONED}`;
}

// clone takes a Transfer or null.
function clone(value, transfer) {
  if (!isObject(value) && typeof value !== "symbol" && transfer === null) return value;
  const buffers = transfer === null ? nothing : transfer.buffers;
  const out = host.clone(value, buffers, ObjectPrototype, (question, about) => {
    switch (question) {
      case ERROR: return dataCloneError(withoutSource(about));
      case IS_HOST: return isCopied(about, transfer);
      case COPY: return copy(about, transfer);
      default: return move(buffers);
    }
  });
  if (transfer !== null) {
    const { home, made, objects } = transfer;
    for (let i = 0; i < objects.length; i++) {
      if (internal.isMessagePort(objects[i])) internal.movePort(objects[i], made[i]);
      else internal.moveStream(objects[i], made[i], home);
    }
  }
  return out;
}

// sending answers the questions of host.serialize and host.deserialize. An object whose prototype is another than that
// of {} is refused, as in workerd: its methods would be lost.
function sending(question, about) {
  if (question === ERROR) return dataCloneError(withoutSource(about));
  const type = internal.inspectParts.className(about) || "Object";
  throw dataCloneError(`Could not serialize object of type "${type}". This type does not support serialization.`);
}

// serialize returns the bytes of a value that goes to another context, and deserialize the value of bytes that serialize
// made. No handler code ever has the bytes: V8 trusts them.
internal.serialize = (value) => host.serialize(value, ObjectPrototype, sending);
internal.deserialize = (bytes) => host.deserialize(bytes, sending);

const isStream = (value) => internal.isReadableStream(value) || internal.isWritableStream(value) || internal.isTransformStream(value);

// toTransfer checks a list of objects to transfer. home is the Home of the new ports.
function toTransfer(list, home) {
  if (list.length === 0) return null;
  const transfer = new Transfer(home);
  const seen = new Set();
  for (let i = 0; i < list.length; i++) {
    const item = list[i];
    const isPort = internal.isMessagePort(item);
    if (!isPort && !isStream(item) && !isArrayBuffer(item)) throw dataCloneError("a value to transfer is not transferable");
    if (SetPrototypeHas(seen, item)) throw dataCloneError("a value is transferred twice");
    SetPrototypeAdd(seen, item);
    if (isArrayBuffer(item)) transfer.buffers[transfer.buffers.length] = item;
    else addObject(transfer, item, isPort);
  }
  return transfer;
}

function addObject(transfer, item, isPort) {
  const { byObject, home, made, madePorts, objects } = transfer;
  if (isPort && internal.isPortDetached(item)) throw dataCloneError("a port to transfer is detached");
  const copy = isPort ? internal.newPort(home ?? internal.here()) : internal.prepareStream(item);
  objects[objects.length] = item;
  made[made.length] = copy;
  if (isPort) madePorts[madePorts.length] = copy;
  MapPrototypeSet(byObject, item, copy);
}

// toObjects converts a sequence of objects, such as a transfer list.
internal.toObjects = (given, what, method) => toSequence(given, (item) => {
  if (!isObject(item)) throw new TypeError(`${what}: a value to transfer is not an object`);
  return item;
}, `${what}: transfer`, method);

const operations = {
  structuredClone(value, options = undefined) {
    checkGlobal(this);
    requireArguments(arguments.length, 1, "structuredClone");
    const init = toDictionary(options, "structuredClone: the options");
    const given = init?.transfer;
    const list = given === undefined ? nothing : internal.toObjects(given, "structuredClone");
    return clone(value, toTransfer(list, null));
  },
};
defineOperation("structuredClone", operations.structuredClone);
primordials.ObjectAssign(internal, { cloneFor: clone, structuredClone: (value) => clone(value, null), toTransfer });
