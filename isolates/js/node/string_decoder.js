// node/string_decoder.js is node:string_decoder: text from bytes that come in parts.

"use strict";

const {
  ArrayBufferIsView, StringPrototypeSlice, TypedArrayPrototypeSet,
  Uint8Array, lengthOf, subarray,
} = primordials;
const { viewBytes } = internal;
const { builtin, put, wrongType } = internal.node;
const { Buffer } = builtin("buffer");
const { encodingOf, toText } = internal.node.codec;

// tailOf returns how many bytes at the end begin a character that later bytes complete.
function tailOf(bytes, encoding) {
  const n = lengthOf(bytes);
  if (encoding === "utf16le") {
    const odd = n & 1;
    const high = n - odd >= 2 ? bytes[n - odd - 1] : 0;
    return high >= 0xd8 && high <= 0xdb ? odd + 2 : odd;
  }
  if (encoding === "base64" || encoding === "base64url") return n % 3;
  if (encoding !== "utf8") return 0;
  for (let back = 1; back <= 3 && back <= n; back++) {
    const c = bytes[n - back];
    if (c >= 0x80 && c <= 0xbf) continue;
    const need = c >= 0xc2 && c <= 0xdf ? 2 : c >= 0xe0 && c <= 0xef ? 3 : c >= 0xf0 && c <= 0xf4 ? 4 : 0;
    return need > back ? back : 0;
  }
  return 0;
}

const empty = new Uint8Array(0);

function StringDecoder(encoding) {
  this.encoding = encodingOf(encoding);
  this._pending = empty;
}

function decode(self, bytes, last) {
  const before = self._pending;
  let all = bytes;
  if (lengthOf(before) > 0) {
    all = new Uint8Array(lengthOf(before) + lengthOf(bytes));
    TypedArrayPrototypeSet(all, before, 0);
    TypedArrayPrototypeSet(all, bytes, lengthOf(before));
  }
  const tail = last ? 0 : tailOf(all, self.encoding);
  const whole = lengthOf(all) - tail;
  self._pending = tail === 0 ? empty : new Uint8Array(subarray(all, whole));
  const text = toText(subarray(all, 0, whole), self.encoding);
  return last && self.encoding === "utf16le" && text.length > 0 ? trimmed(text, lengthOf(all)) : text;
}

// trimmed is the text of an end in UTF-16: half a unit is nothing.
function trimmed(text, n) {
  const odd = n & 1;
  return odd === 1 && text.length * 2 > n ? StringPrototypeSlice(text, 0, text.length - 1) : text;
}

put(StringDecoder.prototype, {
  write(data) {
    if (typeof data === "string") return data;
    if (!ArrayBufferIsView(data)) throw wrongType("buf", "an instance of Buffer, TypedArray, or DataView", data);
    return decode(this, viewBytes(data), false);
  },
  end(data) {
    const text = data === undefined ? "" : this.write(data);
    return text + decode(this, empty, true);
  },
  text(data, offset) {
    this._pending = empty;
    return this.write(data.slice(offset));
  },
  get lastChar() { return Buffer.from(this._pending); },
  get lastNeed() {
    const n = lengthOf(this._pending);
    if (n === 0) return 0;
    const first = this._pending[0];
    return this.encoding !== "utf8" ? (this.encoding === "utf16le" ? (n & 1) || 2 : 3 - n) : (first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2) - n;
  },
  get lastTotal() { return lengthOf(this._pending) === 0 ? 0 : lengthOf(this._pending) + this.lastNeed; },
});

internal.nodeModules.string_decoder = put({}, { StringDecoder });
