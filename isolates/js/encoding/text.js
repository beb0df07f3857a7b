// encoding/text.js is TextEncoder and TextDecoder of the Encoding standard. The host decodes UTF-8. This file decodes
// UTF-16, windows-1252 and x-user-defined. Go decodes the other legacy encodings (isolates/offload/charset).

"use strict";

const {
  List, RangeError, ReflectApply, StringFromCharCode, StringPrototypeCharCodeAt,
  StringPrototypeIsWellFormed, StringPrototypeSlice, StringPrototypeToWellFormed, TypeError, TypedArrayPrototypeGetTag, TypedArrayPrototypeSet, Uint16Array, Uint8Array,
  lengthOf, subarray,
} = primordials;
const {
  askOps, defineInterface, encodingOf, illegalInvocation, isBufferSource, isView, liveBytes, requireArguments, toDOMString, toDictionary,
} = internal;
const { ask, decode, encode, encodeInto } = host;

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
    if (!isView(destination) || TypedArrayPrototypeGetTag(destination) !== "Uint8Array") {
      throw new TypeError("TextEncoder.encodeInto: the destination is not a Uint8Array");
    }
    const counts = encodeInto(text, destination);
    return { read: counts[0], written: counts[1] };
  }
}
defineInterface(TextEncoder, "TextEncoder");

// ---- decoders ----

// windows1252 has the 32 code points of windows-1252 that differ from Latin-1.
const windows1252 = [
  0x20ac, 0x81, 0x201a, 0x192, 0x201e, 0x2026, 0x2020, 0x2021, 0x2c6, 0x2030, 0x160, 0x2039, 0x152, 0x8d, 0x17d, 0x8f,
  0x90, 0x2018, 0x2019, 0x201c, 0x201d, 0x2022, 0x2013, 0x2014, 0x2dc, 0x2122, 0x161, 0x203a, 0x153, 0x9d, 0x17e, 0x178,
];

const EMPTY = new Uint8Array(0);
const PORTION = 524288;

function concat(a, b) {
  if (lengthOf(a) === 0) return b;
  const out = new Uint8Array(lengthOf(a) + lengthOf(b));
  TypedArrayPrototypeSet(out, a, 0);
  TypedArrayPrototypeSet(out, b, lengthOf(a));
  return out;
}

// incompleteTail returns the number of bytes at the end that begin a UTF-8 sequence which later bytes can complete.
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

// fromUnits makes a string from a typed array of code units, in portions that fit the stack.
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

function decodeUserDefined(bytes) {
  const units = new Uint16Array(lengthOf(bytes));
  for (let i = 0; i < lengthOf(bytes); i++) units[i] = bytes[i] >= 0x80 ? 0xf700 + bytes[i] : bytes[i];
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
  // At the end, a lead surrogate and a half unit after it count as one error together.
  const last = text.length === 0 ? 0 : StringPrototypeCharCodeAt(text, text.length - 1);
  return StringPrototypeToWellFormed(text) + (odd && !(last >= 0xd800 && last <= 0xdbff) ? "\ufffd" : "");
}

// utf16Tail returns the length of an incomplete end: an odd byte, or a lead surrogate whose second half can still
// arrive.
function utf16Tail(bytes, big) {
  const odd = lengthOf(bytes) & 1;
  const end = lengthOf(bytes) - odd;
  if (end < 2) return odd;
  const high = big ? bytes[end - 2] : bytes[end - 1];
  return high >= 0xd8 && high <= 0xdb ? odd + 2 : odd;
}

class TextDecoder {
  #encoding;
  #unicode; // whether the encoding has a BOM
  #fatal;
  #ignoreBOM;
  #pending = EMPTY;
  #state = 0; // the state of a legacy encoding
  #streaming = false;
  #bomSeen = false;
  constructor(label = "utf-8", options = undefined) {
    const text = toDOMString(label);
    const init = toDictionary(options, "new TextDecoder: the options");
    const fatal = init === undefined ? false : !!init.fatal;
    const ignoreBOM = init === undefined ? false : !!init.ignoreBOM;
    const encoding = encodingOf(text);
    if (encoding === undefined || encoding === "replacement") {
      throw new RangeError(`new TextDecoder: unknown encoding ${internal.inspectBrief(text)}`);
    }
    this.#encoding = encoding;
    this.#unicode = encoding === "utf-8" || encoding === "utf-16le" || encoding === "utf-16be";
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
  static {
    // decodeWith is decode() for the runtime. Its bytes must not be detached.
    internal.decodeWith = (decoder, bytes, stream) => decoder.#decode(bytes, stream);
  }
  decode(input = undefined, options = undefined) {
    if (!(#fatal in this)) throw illegalInvocation("TextDecoder");
    if (input !== undefined && !isBufferSource(input)) {
      throw new TypeError("TextDecoder.decode: the input is neither an ArrayBuffer nor a view");
    }
    const init = toDictionary(options, "TextDecoder.decode: the options");
    const stream = init === undefined ? false : !!init.stream;
    return this.#decode(input === undefined ? EMPTY : liveBytes(input), stream);
  }
  #decode(input, stream) {
    if (!this.#streaming) {
      this.#pending = EMPTY;
      this.#state = 0;
      this.#bomSeen = false;
    }
    this.#streaming = stream;
    return this.#finish(this.#take(concat(this.#pending, input), stream));
  }
  // take decodes the complete sequences and keeps the rest for the next call.
  #take(bytes, stream) {
    try {
      switch (this.#encoding) {
        case "utf-8": return decodeUTF8(this.#keep(bytes, stream ? incompleteTail(bytes) : 0), this.#fatal);
        case "utf-16le": return this.#utf16(bytes, stream, false);
        case "utf-16be": return this.#utf16(bytes, stream, true);
        case "windows-1252": return decodeSingleByte(bytes);
        case "x-user-defined": return decodeUserDefined(bytes);
        default: return this.#legacy(bytes, stream);
      }
    } catch (error) {
      this.#pending = EMPTY;
      this.#streaming = false;
      throw error;
    }
  }
  // keep stores the last n bytes and returns the others.
  #keep(bytes, n) {
    if (n === 0) {
      this.#pending = EMPTY;
      return bytes;
    }
    const whole = lengthOf(bytes) - n;
    this.#pending = new Uint8Array(subarray(bytes, whole));
    return subarray(bytes, 0, whole);
  }
  #utf16(bytes, stream, big) {
    return decodeUTF16(this.#keep(bytes, stream ? utf16Tail(bytes, big) : 0), big, this.#fatal);
  }
  // legacy decodes in portions. V8 can stop a decode that takes too long only between portions.
  #legacy(bytes, stream) {
    const n = lengthOf(bytes);
    let out = "";
    for (let at = 0; ;) {
      const end = n - at > PORTION ? at + PORTION : n;
      const last = end === n && !stream;
      const answer = ask(askOps.DECODE, this.#encoding, this.#state, subarray(bytes, at, end), last, this.#fatal);
      if (answer === null) throw new TypeError(`the bytes are not valid ${this.#encoding}`);
      const rest = StringPrototypeCharCodeAt(answer[1], 0);
      this.#state = StringPrototypeCharCodeAt(answer[1], 1);
      out += answer[0];
      if (end === n) {
        this.#keep(bytes, rest);
        return out;
      }
      at = end - rest;
    }
  }
  #finish(text) {
    if (this.#bomSeen || text.length === 0 || !this.#unicode) return text;
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
