// fetch/blob.js is Blob and File of the File API. Bytes are in memory, and slices share them.

"use strict";

const {
  DateNow, List, PromiseReject, PromiseResolve, StringPrototypeCharCodeAt, StringPrototypeToLowerCase,
  TypedArrayPrototypeGetBuffer, Uint8Array, lengthOf, subarray,
} = primordials;
const {
  TOKEN, concatBytes, copyBytes, defineInterface, illegalInvocation, isBufferSource, isObject, requireArguments, toDOMString,
  toDictionary, toEnum, toLongLong, toSequence, toUSVString,
} = internal;
const { decode, encode } = host;

const endings = ["transparent", "native"];
let bytesOf;
let fill;

class Blob {
  #bytes;
  #type;
  constructor(blobParts = undefined, options = undefined) {
    if (blobParts === TOKEN) {
      this.#bytes = options.bytes;
      this.#type = options.type;
      return;
    }
    const parts = blobParts === undefined ? new List() : toSequence(blobParts, toPart, "new Blob: the parts");
    const bag = readBag(toDictionary(options, "new Blob: the options"));
    this.#bytes = join(parts, bag.native);
    this.#type = bag.type;
  }
  static {
    bytesOf = (value) => {
      if (!isObject(value) || !(#type in value)) throw illegalInvocation("Blob");
      return value.#bytes;
    };
    internal.isBlob = (value) => isObject(value) && #type in value;
    internal.blobType = (value) => value.#type;
    fill = (blob, bytes, type) => {
      blob.#bytes = bytes;
      blob.#type = type;
    };
  }
  get size() { return lengthOf(bytesOf(this)); }
  get type() {
    bytesOf(this);
    return this.#type;
  }
  slice(start = undefined, end = undefined, contentType = undefined) {
    const bytes = bytesOf(this);
    const from = position(start, 0, lengthOf(bytes));
    const to = position(end, lengthOf(bytes), lengthOf(bytes));
    const type = contentType === undefined ? "" : cleanType(toDOMString(contentType));
    const part = subarray(bytes, from, to < from ? from : to);
    return new Blob(TOKEN, { __proto__: null, bytes: part, type });
  }
  stream() { return internal.streamOfBytes(new Uint8Array(bytesOf(this))); }
  text() {
    return promised(() => {
      const text = decode(bytesOf(this), false);
      return text.length > 0 && StringPrototypeCharCodeAt(text, 0) === 0xfeff ? primordials.StringPrototypeSlice(text, 1) : text;
    });
  }
  arrayBuffer() { return promised(() => TypedArrayPrototypeGetBuffer(new Uint8Array(bytesOf(this)))); }
  bytes() { return promised(() => new Uint8Array(bytesOf(this))); }
}
defineInterface(Blob, "Blob");

// readBag reads a BlobPropertyBag.
function readBag(init) {
  const ending = init?.endings;
  const native = ending !== undefined && toEnum(ending, endings, "endings") === "native";
  const type = init?.type;
  return { __proto__: null, native, type: type === undefined ? "" : cleanType(toDOMString(type)) };
}

function promised(make) {
  try {
    return PromiseResolve(make());
  } catch (error) {
    return PromiseReject(error);
  }
}

function position(value, fallback, size) {
  if (value === undefined) return fallback;
  const n = toLongLong(value, "clamp");
  if (n < 0) return size + n < 0 ? 0 : size + n;
  return n > size ? size : n;
}

function cleanType(type) {
  for (let i = 0; i < type.length; i++) {
    const c = StringPrototypeCharCodeAt(type, i);
    if (c < 0x20 || c > 0x7e) return "";
  }
  return StringPrototypeToLowerCase(type);
}

// toPart converts one BlobPart immediately, so that later changes of a buffer have no effect.
function toPart(value) {
  if (isBufferSource(value)) return copyBytes(value);
  if (internal.isBlob(value)) return bytesOf(value);
  return toUSVString(value);
}

function join(parts, native) {
  for (let i = 0; i < parts.length; i++) {
    if (typeof parts[i] === "string") parts[i] = encode(native ? nativeEndings(parts[i]) : parts[i]);
  }
  return parts.length === 1 ? parts[0] : concatBytes(parts);
}

function nativeEndings(text) {
  let out = "";
  for (let i = 0; i < text.length; i++) {
    if (text[i] !== "\r") out += text[i];
    else {
      out += "\n";
      if (i + 1 < text.length && text[i + 1] === "\n") i++;
    }
  }
  return out;
}

class File extends Blob {
  #name;
  #lastModified;
  constructor(fileBits, fileName, options = undefined) {
    if (fileBits === TOKEN) {
      super(); // passes nothing, because handler code can replace the parent class
      fill(this, fileName.bytes, fileName.type);
      this.#name = options.name;
      this.#lastModified = options.lastModified;
      return;
    }
    requireArguments(arguments.length, 2, "new File");
    const parts = toSequence(fileBits, toPart, "new File: the parts");
    const name = toUSVString(fileName);
    const init = toDictionary(options, "new File: the options");
    const bag = readBag(init);
    const modified = init?.lastModified;
    super();
    fill(this, join(parts, bag.native), bag.type);
    this.#name = name;
    this.#lastModified = modified === undefined ? DateNow() : toLongLong(modified);
  }
  static {
    internal.isFile = (value) => isObject(value) && #name in value;
    internal.fileName = (value) => value.#name;
    internal.fileModified = (value) => value.#lastModified;
  }
  get name() {
    if (!internal.isFile(this)) throw illegalInvocation("File");
    return this.#name;
  }
  get lastModified() {
    if (!internal.isFile(this)) throw illegalInvocation("File");
    return this.#lastModified;
  }
}
defineInterface(File, "File");

internal.addInspector((value) => internal.isBlob(value), (value) => internal.isFile(value)
  ? ["size", lengthOf(bytesOf(value)), "type", internal.blobType(value), "name", internal.fileName(value)]
  : ["size", lengthOf(bytesOf(value)), "type", internal.blobType(value)]);
internal.blobView = (value) => bytesOf(value);
internal.blobBytes = (value) => new Uint8Array(bytesOf(value));
// newBlob and newFile keep the type that the runtime passes. The type of a body is a serialised MIME type. Its
// parameters can have capitals and characters outside ASCII.
internal.newBlob = (bytes, type) => new Blob(TOKEN, { __proto__: null, bytes, type });
internal.newFile = (bytes, type, name, lastModified) =>
  new File(TOKEN, { __proto__: null, bytes, type }, { __proto__: null, name, lastModified });
internal.cleanType = cleanType;
