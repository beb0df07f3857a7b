// 45_blob.js is Blob and File of the File API. Bytes are held in memory; slices share them.

"use strict";

const {
  DateNow, List, PromiseReject, PromiseResolve, StringPrototypeCharCodeAt, StringPrototypeToLowerCase, TypeError,
  TypedArrayPrototypeGetBuffer, TypedArrayPrototypeSet, Uint8Array, lengthOf, subarray,
} = primordials;
const {
  TOKEN, copyBytes, defineInterface, illegalInvocation, isBufferSource, isObject, requireArguments, toDOMString,
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
    const init = toDictionary(options, "new Blob: the options");
    const ending = init?.endings;
    const native = ending !== undefined && toEnum(ending, endings, "endings") === "native";
    const type = init?.type;
    this.#bytes = join(parts, native);
    this.#type = type === undefined ? "" : cleanType(toDOMString(type));
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

// toPart converts one BlobPart at once, so that later changes of a buffer are not seen.
function toPart(value) {
  if (isBufferSource(value)) return copyBytes(value);
  if (internal.isBlob(value)) return bytesOf(value);
  return toUSVString(value);
}

function join(parts, native) {
  let size = 0;
  for (let i = 0; i < parts.length; i++) {
    if (typeof parts[i] === "string") parts[i] = encode(native ? nativeEndings(parts[i]) : parts[i]);
    size += lengthOf(parts[i]);
  }
  if (parts.length === 1) return parts[0];
  const out = new Uint8Array(size);
  let at = 0;
  for (let i = 0; i < parts.length; i++) {
    TypedArrayPrototypeSet(out, parts[i], at);
    at += lengthOf(parts[i]);
  }
  return out;
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
      super(); // of whatever a guest has made the parent: it is passed nothing
      fill(this, fileName.bytes, fileName.type);
      this.#name = options.name;
      this.#lastModified = options.lastModified;
      return;
    }
    requireArguments(arguments.length, 2, "new File");
    if (!isObject(fileBits)) throw new TypeError("new File: the parts are not iterable");
    super(fileBits, options);
    this.#name = toUSVString(fileName);
    const modified = toDictionary(options)?.lastModified;
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
internal.newBlob = (bytes, type) => new Blob(TOKEN, { __proto__: null, bytes, type: cleanType(type) });
internal.newFile = (bytes, type, name, lastModified) =>
  new File(TOKEN, { __proto__: null, bytes, type }, { __proto__: null, name, lastModified });
