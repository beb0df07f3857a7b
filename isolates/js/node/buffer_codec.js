// node/buffer_codec.js turns strings into bytes and back, by the encodings of node:buffer.

"use strict";

const {
  ReflectApply, StringFromCharCode, StringPrototypeCharCodeAt, StringPrototypeToLowerCase, TypeError, Uint16Array,
  Uint8Array, lengthOf, subarray, TypedArrayPrototypeSet,
} = primordials;
const { coded } = internal.node;
const { decode, encode } = host;

// encodings has the name of each encoding by its names in lower case.
const encodings = {
  __proto__: null,
  "utf8": "utf8", "utf-8": "utf8", "ucs2": "utf16le", "ucs-2": "utf16le", "utf16le": "utf16le", "utf-16le": "utf16le",
  "latin1": "latin1", "binary": "latin1", "base64": "base64", "base64url": "base64url", "hex": "hex", "ascii": "ascii",
};

// normal returns the name of an encoding, or undefined.
function normal(encoding) {
  return encodings[encoding] ?? encodings[StringPrototypeToLowerCase(`${encoding}`)];
}

// encodingOf is normal for an argument that may be missing. It throws for a name that is none.
function encodingOf(encoding) {
  if (encoding === undefined || encoding === null || encoding === "") return "utf8";
  const name = normal(encoding);
  if (name === undefined) throw coded(TypeError, "ERR_UNKNOWN_ENCODING", `Unknown encoding: ${encoding}`);
  return name;
}

// ---- strings to bytes ----

function hexValue(c) {
  return c >= 48 && c <= 57 ? c - 48 : c >= 97 && c <= 102 ? c - 87 : c >= 65 && c <= 70 ? c - 55 : -1;
}

// fromHex stops at the first pair that is not of hexadecimal digits.
function fromHex(text) {
  const out = new Uint8Array(text.length >>> 1);
  let n = 0;
  for (let i = 0; i + 1 < text.length; i += 2) {
    const high = hexValue(StringPrototypeCharCodeAt(text, i));
    const low = hexValue(StringPrototypeCharCodeAt(text, i + 1));
    if (high < 0 || low < 0) break;
    out[n++] = (high << 4) | low;
  }
  return n === lengthOf(out) ? out : subarray(out, 0, n);
}

// base64Values has the value of each character of both alphabets, 64 of =, and 255 of the others, which are skipped.
const base64Values = new Uint8Array(256);
for (let i = 0; i < 256; i++) base64Values[i] = 255;
for (let i = 0; i < 62; i++) base64Values[i < 26 ? 65 + i : i < 52 ? 71 + i : i - 4] = i;
base64Values[43] = base64Values[45] = 62;
base64Values[47] = base64Values[95] = 63;
base64Values[61] = 64;

function fromBase64(text) {
  const n = text.length;
  const out = new Uint8Array((n >>> 2) * 3 + 3);
  let at = 0;
  let bits = 0;
  let have = 0;
  for (let i = 0; i < n; i++) {
    const c = StringPrototypeCharCodeAt(text, i);
    const v = base64Values[c & 255]; // Node looks at the low byte only
    if (v === 255) continue;
    if (v === 64) break;
    bits = (bits << 6) | v;
    have += 6;
    if (have < 8) continue;
    have -= 8;
    out[at++] = bits >>> have;
    bits &= (1 << have) - 1;
  }
  return subarray(out, 0, at);
}

function fromLatin1(text) {
  const out = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) out[i] = StringPrototypeCharCodeAt(text, i);
  return out;
}

function fromUtf16(text) {
  const out = new Uint8Array(text.length * 2);
  for (let i = 0; i < text.length; i++) {
    const c = StringPrototypeCharCodeAt(text, i);
    out[2 * i] = c;
    out[2 * i + 1] = c >>> 8;
  }
  return out;
}

// toBytes returns the bytes of a string. They may be a part of a larger buffer.
function toBytes(text, encoding) {
  switch (encoding) {
    case "utf8": return encode(text);
    case "latin1": case "ascii": return fromLatin1(text);
    case "hex": return fromHex(text);
    case "base64": case "base64url": return fromBase64(text);
    default: return fromUtf16(text);
  }
}

// byteLength returns how many bytes a string has at most. Node does not look at the characters of hex and base64 either.
function byteLength(text, encoding) {
  switch (encoding) {
    case "utf8": return utf8Length(text);
    case "latin1": case "ascii": return text.length;
    case "hex": return text.length >>> 1;
    case "base64": case "base64url": {
      let n = text.length;
      if (n > 0 && StringPrototypeCharCodeAt(text, n - 1) === 61) n--;
      if (n > 1 && StringPrototypeCharCodeAt(text, n - 1) === 61) n--;
      return (n * 3) >>> 2;
    }
    default: return text.length * 2;
  }
}

function utf8Length(text) {
  let n = 0;
  for (let i = 0; i < text.length; i++) {
    const c = StringPrototypeCharCodeAt(text, i);
    if (c < 0x80) n++;
    else if (c < 0x800) n += 2;
    else if (c >= 0xd800 && c <= 0xdbff && i + 1 < text.length && (StringPrototypeCharCodeAt(text, i + 1) & 0xfc00) === 0xdc00) {
      n += 4;
      i++;
    } else n += 3;
  }
  return n;
}

// ---- bytes to strings ----

function toHex(bytes) {
  const n = lengthOf(bytes);
  const out = new Uint8Array(n * 2);
  for (let i = 0; i < n; i++) {
    const high = bytes[i] >>> 4;
    const low = bytes[i] & 15;
    out[2 * i] = high < 10 ? 48 + high : 87 + high;
    out[2 * i + 1] = low < 10 ? 48 + low : 87 + low;
  }
  return decode(out);
}

// toLatin1 decodes by way of UTF-8, which the host decodes fast.
function toLatin1(bytes, mask) {
  const n = lengthOf(bytes);
  let high = 0;
  for (let i = 0; i < n; i++) high += (bytes[i] & mask) >>> 7;
  const out = new Uint8Array(n + high);
  let at = 0;
  for (let i = 0; i < n; i++) {
    const c = bytes[i] & mask;
    if (c < 128) out[at++] = c;
    else {
      out[at++] = 0xc0 | (c >>> 6);
      out[at++] = 0x80 | (c & 63);
    }
  }
  return decode(out);
}

function toUtf16(bytes) {
  const n = lengthOf(bytes) >>> 1;
  let out = "";
  for (let i = 0; i < n;) {
    const units = new Uint16Array(n - i < 4096 ? n - i : 4096);
    for (let k = 0; k < lengthOf(units); k++, i++) units[k] = bytes[2 * i] | (bytes[2 * i + 1] << 8);
    out += ReflectApply(StringFromCharCode, undefined, units);
  }
  return out;
}

function toText(bytes, encoding) {
  if (lengthOf(bytes) === 0) return "";
  switch (encoding) {
    case "utf8": return decode(bytes);
    case "latin1": return toLatin1(bytes, 255);
    case "ascii": return toLatin1(bytes, 127);
    case "hex": return toHex(bytes);
    case "base64": return internal.toBase64(bytes);
    case "base64url": return internal.toBase64url(bytes);
    default: return toUtf16(bytes);
  }
}

// writeText writes as much of a string into bytes as fits, without a part of a character, and returns how many bytes
// these are.
function writeText(bytes, text, encoding) {
  if (encoding === "utf8") return lengthOf(bytes) === 0 ? 0 : host.encodeInto(text, bytes)[1];
  let from = toBytes(text, encoding);
  let n = lengthOf(from) < lengthOf(bytes) ? lengthOf(from) : lengthOf(bytes);
  if (encoding === "utf16le") n &= ~1;
  if (n < lengthOf(from)) from = subarray(from, 0, n);
  TypedArrayPrototypeSet(bytes, from, 0);
  return n;
}

internal.node.codec = { __proto__: null, byteLength, encodingOf, normal, toBytes, toText, writeText };
