// 30_encoding.js is TextEncoder and TextDecoder of the Encoding standard. UTF-8 is the host's; UTF-16 and windows-1252
// (with all their labels) are here; other legacy encodings are refused with a RangeError.

"use strict";

const {
  ArrayBufferIsView, List, Map, MapPrototypeGet, MapPrototypeSet, RangeError, ReflectApply, StringFromCharCode,
  StringPrototypeCharCodeAt, StringPrototypeIsWellFormed, StringPrototypeSlice, StringPrototypeToLowerCase,
  StringPrototypeToWellFormed, TypeError, TypedArrayPrototypeGetTag, TypedArrayPrototypeSet, Uint16Array, Uint8Array,
  lengthOf, subarray,
} = primordials;
const {
  defineInterface, illegalInvocation, isBufferSource, requireArguments, toDOMString, toDictionary, viewBytes,
} = internal;
const { decode, encode, encodeInto } = host;

class TextEncoder {
  #brand = true;
  get encoding() {
    if (!(#brand in this)) throw illegalInvocation("TextEncoder");
    return "utf-8";
  }
  encode(input = "") {
    if (!(#brand in this)) throw illegalInvocation("TextEncoder");
    return encode(toDOMString(input));
  }
  encodeInto(source, destination) {
    if (!(#brand in this)) throw illegalInvocation("TextEncoder");
    requireArguments(arguments.length, 2, "TextEncoder.encodeInto");
    const text = toDOMString(source);
    if (!ArrayBufferIsView(destination) || TypedArrayPrototypeGetTag(destination) !== "Uint8Array") {
      throw new TypeError("TextEncoder.encodeInto: the destination is not a Uint8Array");
    }
    const counts = encodeInto(text, destination);
    return { read: counts[0], written: counts[1] };
  }
}
defineInterface(TextEncoder, "TextEncoder");

// ---- labels ----

const labels = new Map();
function addLabels(name, list) {
  for (const label of list) MapPrototypeSet(labels, label, name);
}
addLabels("utf-8", ["unicode-1-1-utf-8", "unicode11utf8", "unicode20utf8", "utf-8", "utf8", "x-unicode20utf8"]);
addLabels("utf-16le", ["csunicode", "iso-10646-ucs-2", "ucs-2", "unicode", "unicodefeff", "utf-16", "utf-16le"]);
addLabels("utf-16be", ["unicodefffe", "utf-16be"]);
addLabels("windows-1252", ["ansi_x3.4-1968", "ascii", "cp1252", "cp819", "csisolatin1", "ibm819", "iso-8859-1", "iso-ir-100",
  "iso8859-1", "iso88591", "iso_8859-1", "iso_8859-1:1987", "l1", "latin1", "us-ascii", "windows-1252", "x-cp1252"]);

// The 32 code points of windows-1252 that differ from Latin-1.
const windows1252 = new Uint16Array([
  0x20ac, 0x81, 0x201a, 0x192, 0x201e, 0x2026, 0x2020, 0x2021, 0x2c6, 0x2030, 0x160, 0x2039, 0x152, 0x8d, 0x17d, 0x8f,
  0x90, 0x2018, 0x2019, 0x201c, 0x201d, 0x2022, 0x2013, 0x2014, 0x2dc, 0x2122, 0x161, 0x203a, 0x153, 0x9d, 0x17e, 0x178,
]);

function encodingOf(label) {
  let start = 0;
  let end = label.length;
  const space = (i) => {
    const c = StringPrototypeCharCodeAt(label, i);
    return c === 9 || c === 10 || c === 12 || c === 13 || c === 32;
  };
  while (start < end && space(start)) start++;
  while (end > start && space(end - 1)) end--;
  const trimmed = StringPrototypeSlice(label, start, end);
  for (let i = 0; i < trimmed.length; i++) {
    if (StringPrototypeCharCodeAt(trimmed, i) > 127) return undefined;
  }
  return MapPrototypeGet(labels, StringPrototypeToLowerCase(trimmed));
}

// ---- decoders ----

const EMPTY = new Uint8Array(0);

function concat(a, b) {
  if (lengthOf(a) === 0) return b;
  const out = new Uint8Array(lengthOf(a) + lengthOf(b));
  TypedArrayPrototypeSet(out, a, 0);
  TypedArrayPrototypeSet(out, b, lengthOf(a));
  return out;
}

// incompleteTail says how many bytes at the end are the beginning of a UTF-8 sequence that may still be completed.
function incompleteTail(bytes) {
  const n = lengthOf(bytes);
  for (let back = 1; back <= 3 && back <= n; back++) {
    const c = bytes[n - back];
    if (c >= 0x80 && c <= 0xbf) continue;
    const need = c >= 0xc2 && c <= 0xdf ? 2 : c >= 0xe0 && c <= 0xef ? 3 : c >= 0xf0 && c <= 0xf4 ? 4 : 0;
    if (need <= back) return 0;
    return back === 1 || secondFits(c, bytes[n - back + 1]) ? back : 0;
  }
  return 0;
}

function secondFits(lead, second) {
  if (lead === 0xe0) return second >= 0xa0;
  if (lead === 0xed) return second <= 0x9f;
  if (lead === 0xf0) return second >= 0x90;
  if (lead === 0xf4) return second <= 0x8f;
  return true;
}

// fromUnits makes a string of a typed array of code units, in portions that fit the stack.
function fromUnits(units) {
  const n = lengthOf(units);
  let out = "";
  for (let i = 0; i < n;) {
    const portion = new List();
    for (; i < n && portion.length < 4096; i++) portion[portion.length] = units[i];
    out += ReflectApply(StringFromCharCode, undefined, portion);
  }
  return out;
}
internal.fromUnits = fromUnits;

function decodeSingleByte(bytes) {
  const units = new Uint16Array(lengthOf(bytes));
  for (let i = 0; i < lengthOf(bytes); i++) {
    const b = bytes[i];
    units[i] = b >= 0x80 && b <= 0x9f ? windows1252[b - 0x80] : b;
  }
  return fromUnits(units);
}

function decodeUTF16(bytes, big, fatal) {
  const units = new Uint16Array(lengthOf(bytes) >> 1);
  for (let i = 0; i < lengthOf(units); i++) {
    units[i] = big ? (bytes[2 * i] << 8) | bytes[2 * i + 1] : bytes[2 * i] | (bytes[2 * i + 1] << 8);
  }
  const text = fromUnits(units);
  const odd = (lengthOf(bytes) & 1) === 1;
  if (!odd && StringPrototypeIsWellFormed(text)) return text;
  if (fatal) throw new TypeError("the bytes are not valid UTF-16");
  return StringPrototypeToWellFormed(text) + (odd ? "\ufffd" : "");
}

// utf16Tail: an odd byte, or a lead surrogate whose other half may come.
function utf16Tail(bytes, big) {
  const odd = lengthOf(bytes) & 1;
  const end = lengthOf(bytes) - odd;
  if (end < 2) return odd;
  const high = big ? bytes[end - 2] : bytes[end - 1];
  return high >= 0xd8 && high <= 0xdb ? odd + 2 : odd;
}

class TextDecoder {
  #encoding;
  #fatal;
  #ignoreBOM;
  #pending = EMPTY;
  #streaming = false;
  #bomSeen = false;
  constructor(label = "utf-8", options = undefined) {
    const text = toDOMString(label);
    const init = toDictionary(options, "new TextDecoder: the options");
    const fatal = init === undefined ? false : !!init.fatal;
    const ignoreBOM = init === undefined ? false : !!init.ignoreBOM;
    const encoding = encodingOf(text);
    if (encoding === undefined) throw new RangeError(`new TextDecoder: unknown encoding ${internal.inspectBrief(text)}`);
    this.#encoding = encoding;
    this.#fatal = fatal;
    this.#ignoreBOM = ignoreBOM;
  }
  get encoding() {
    if (!(#fatal in this)) throw illegalInvocation("TextDecoder");
    return this.#encoding;
  }
  get fatal() {
    if (!(#fatal in this)) throw illegalInvocation("TextDecoder");
    return this.#fatal;
  }
  get ignoreBOM() {
    if (!(#fatal in this)) throw illegalInvocation("TextDecoder");
    return this.#ignoreBOM;
  }
  decode(input = undefined, options = undefined) {
    if (!(#fatal in this)) throw illegalInvocation("TextDecoder");
    if (input !== undefined && !isBufferSource(input)) {
      throw new TypeError("TextDecoder.decode: the input is neither an ArrayBuffer nor a view");
    }
    const init = toDictionary(options, "TextDecoder.decode: the options");
    const stream = init === undefined ? false : !!init.stream;
    if (!this.#streaming) {
      this.#pending = EMPTY;
      this.#bomSeen = false;
    }
    this.#streaming = stream;
    const bytes = concat(this.#pending, input === undefined ? EMPTY : internal.liveBytes(input));
    return this.#finish(this.#take(bytes, stream));
  }
  // take decodes what is complete and keeps the rest for the next call.
  #take(bytes, stream) {
    const big = this.#encoding === "utf-16be";
    const single = this.#encoding === "windows-1252";
    const tail = !stream || single ? 0 : this.#encoding === "utf-8" ? incompleteTail(bytes) : utf16Tail(bytes, big);
    this.#pending = EMPTY;
    if (tail > 0) {
      const whole = lengthOf(bytes) - tail;
      this.#pending = new Uint8Array(subarray(bytes, whole));
      bytes = subarray(bytes, 0, whole);
    }
    try {
      if (single) return decodeSingleByte(bytes);
      return this.#encoding === "utf-8" ? decodeUTF8(bytes, this.#fatal) : decodeUTF16(bytes, big, this.#fatal);
    } catch (error) {
      this.#pending = EMPTY;
      this.#streaming = false;
      throw error;
    }
  }
  #finish(text) {
    if (this.#bomSeen || text.length === 0 || this.#encoding === "windows-1252") return text;
    this.#bomSeen = true;
    return !this.#ignoreBOM && StringPrototypeCharCodeAt(text, 0) === 0xfeff ? StringPrototypeSlice(text, 1) : text;
  }
}
defineInterface(TextDecoder, "TextDecoder");

function decodeUTF8(bytes, fatal) {
  if (!fatal) return decode(bytes, false);
  try {
    return decode(bytes, true);
  } catch {
    throw new TypeError("the bytes are not valid UTF-8");
  }
}

// liveBytes is viewBytes for input a guest gave: a detached buffer reads as empty.
internal.liveBytes = (source) => {
  try {
    return viewBytes(source);
  } catch {
    return EMPTY;
  }
};
