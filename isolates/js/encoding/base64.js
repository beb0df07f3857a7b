// encoding/base64.js is atob and btoa: the forgiving base64 of the Infra standard. It also converts bytes to and from
// base64url, for keys.

"use strict";

const { StringPrototypeCharCodeAt, Uint8Array, lengthOf } = primordials;
const { DOMException, checkGlobal, defineOperation, fromUnits, requireArguments, toDOMString } = internal;

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const urlAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const values = new Uint8Array(128);
const urlValues = new Uint8Array(128);
for (let i = 0; i < 128; i++) values[i] = urlValues[i] = 255;
const codes = new Uint8Array(64);
const urlCodes = new Uint8Array(64);
for (let i = 0; i < 64; i++) {
  codes[i] = StringPrototypeCharCodeAt(alphabet, i);
  urlCodes[i] = StringPrototypeCharCodeAt(urlAlphabet, i);
  values[codes[i]] = i;
  urlValues[urlCodes[i]] = i;
}

function encode(bytes, table, pad) {
  const n = lengthOf(bytes);
  const rest = n % 3;
  const out = new Uint8Array(pad ? ceilThird(n) * 4 : ((n - rest) / 3) * 4 + (rest === 0 ? 0 : rest + 1));
  let at = 0;
  let i = 0;
  for (; i + 2 < n; i += 3) {
    const v = (bytes[i] << 16) | (bytes[i + 1] << 8) | bytes[i + 2];
    out[at++] = table[v >> 18];
    out[at++] = table[(v >> 12) & 63];
    out[at++] = table[(v >> 6) & 63];
    out[at++] = table[v & 63];
  }
  if (rest > 0) {
    const v = (bytes[i] << 16) | (rest === 2 ? bytes[i + 1] << 8 : 0);
    out[at++] = table[v >> 18];
    out[at++] = table[(v >> 12) & 63];
    if (rest === 2) out[at++] = table[(v >> 6) & 63];
    while (at < lengthOf(out)) out[at++] = 61;
  }
  return lengthOf(out) < 256 ? fromUnits(out) : host.decode(out); // ASCII: a call of the host costs more than a few units
}

function ceilThird(n) {
  return (n - (n % 3)) / 3 + (n % 3 === 0 ? 0 : 1);
}

// decode returns bytes, or null when the text is not base64. It handles whitespace and padding as forgiving-base64
// requires.
function decode(text, table, spaces) {
  const clean = new Uint8Array(text.length);
  let n = 0;
  let padding = 0;
  for (let i = 0; i < text.length; i++) {
    const c = StringPrototypeCharCodeAt(text, i);
    if (spaces && (c === 9 || c === 10 || c === 12 || c === 13 || c === 32)) continue;
    if (c === 61) {
      padding++;
      continue;
    }
    if (padding > 0 || c > 127 || table[c] === 255) return null;
    clean[n++] = table[c];
  }
  if (padding > 2 || (padding > 0 && (n + padding) % 4 !== 0) || n % 4 === 1) return null;
  const rest = n % 4;
  const out = new Uint8Array(((n - rest) / 4) * 3 + (rest === 0 ? 0 : rest - 1));
  let at = 0;
  let i = 0;
  for (; i + 3 < n; i += 4) {
    const v = (clean[i] << 18) | (clean[i + 1] << 12) | (clean[i + 2] << 6) | clean[i + 3];
    out[at++] = v >> 16;
    out[at++] = (v >> 8) & 255;
    out[at++] = v & 255;
  }
  if (rest >= 2) out[at++] = (clean[i] << 2) | (clean[i + 1] >> 4);
  if (rest === 3) out[at++] = ((clean[i + 1] & 15) << 4) | (clean[i + 2] >> 2);
  return out;
}

const operations = {
  atob(data) {
    checkGlobal(this);
    requireArguments(arguments.length, 1, "atob");
    const bytes = decode(toDOMString(data), values, true);
    if (bytes === null) throw new DOMException("atob: the string is not valid base64", "InvalidCharacterError");
    return fromUnits(bytes);
  },
  btoa(data) {
    checkGlobal(this);
    requireArguments(arguments.length, 1, "btoa");
    const text = toDOMString(data);
    const bytes = new Uint8Array(text.length);
    for (let i = 0; i < text.length; i++) {
      const c = StringPrototypeCharCodeAt(text, i);
      if (c > 255) throw new DOMException("btoa: the string has characters above 255", "InvalidCharacterError");
      bytes[i] = c;
    }
    return encode(bytes, codes, true);
  },
};
defineOperation("atob", operations.atob);
defineOperation("btoa", operations.btoa);

internal.toBase64 = (bytes) => encode(bytes, codes, true);
internal.toBase64url = (bytes) => encode(bytes, urlCodes, false);
internal.fromForgivingBase64 = (text) => decode(text, values, true);
internal.fromBase64url = (text) => decode(text, urlValues, false);
