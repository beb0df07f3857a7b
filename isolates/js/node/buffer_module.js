// node/buffer_module.js is the module node:buffer: Buffer and what is around it.

"use strict";

const {
  ArrayBufferIsView, Error, ReflectGet, TypedArrayPrototypeGetTag, globalThis, lengthOf,
} = primordials;
const { isArrayBuffer, liveBytes } = internal;
const { node } = internal;
const { checks, coded, put, wrongType } = node;
const { normal, toBytes, toText } = internal.node.codec;
const { Buffer, SlowBuffer, kMaxLength, needBytes, over } = internal.node.bufferParts;

const kStringMaxLength = 536870888;

function inputOf(value) {
  if (isArrayBuffer(value) || (ArrayBufferIsView(value) && TypedArrayPrototypeGetTag(value) !== undefined)) return liveBytes(value);
  throw wrongType("input", "an instance of ArrayBuffer, Buffer, or TypedArray", value);
}

const constants = put({}, { MAX_LENGTH: kMaxLength, MAX_STRING_LENGTH: kStringMaxLength });

const functions = {
  isUtf8(input) {
    const bytes = inputOf(input);
    try {
      host.decode(bytes, true);
      return true;
    } catch {
      return false;
    }
  },
  isAscii(input) {
    const bytes = inputOf(input);
    let all = 0;
    for (let i = 0; i < lengthOf(bytes); i++) all |= bytes[i];
    return all < 128;
  },
  transcode(source, fromEncoding, toEncoding) {
    needBytes(source, "source");
    const from = normal(fromEncoding);
    const to = normal(toEncoding);
    const able = (name) => name === "utf8" || name === "utf16le" || name === "latin1" || name === "ascii";
    if (!able(from) || !able(to)) {
      throw put(coded(Error, "U_ILLEGAL_ARGUMENT_ERROR", "Unable to transcode Buffer [U_ILLEGAL_ARGUMENT_ERROR]"), { errno: 1 });
    }
    let text = toText(source, from === "ascii" ? "latin1" : from);
    if (to === "ascii" || to === "latin1") text = narrowed(text, to === "ascii" ? 127 : 255);
    return over(toBytes(text, to));
  },
  resolveObjectURL(id) {
    checks.string(id, "id");
    return internal.blobOf(id);
  },
  atob(input) { return globalThis.atob(input); },
  btoa(input) { return globalThis.btoa(input); },
};

// narrowed puts a question mark in place of each character that has no byte.
function narrowed(text, most) {
  let out = "";
  for (let i = 0; i < text.length; i++) {
    const code = primordials.StringPrototypeCodePointAt(text, i);
    out += code > most ? "?" : text[i];
    if (code > 0xffff) i++;
  }
  return out;
}

const module = put({}, { Buffer, SlowBuffer, constants, kMaxLength, kStringMaxLength });
put(module, functions);
put(module, {
  get INSPECT_MAX_BYTES() { return node.inspectMaxBytes; },
  set INSPECT_MAX_BYTES(value) {
    checks.number(value, "INSPECT_MAX_BYTES", 0);
    node.inspectMaxBytes = value;
  },
  get Blob() { return ReflectGet(globalThis, "Blob"); },
  get File() { return ReflectGet(globalThis, "File"); },
});

internal.provide("Buffer", Buffer);
internal.nodeModules.buffer = module;
