// url/host.js is the part of the URL standard that the parser uses: percent-encoding, hosts, IPv4 and IPv6.

"use strict";

const {
  MathFloor, NumberPrototypeToString, StringFromCharCode, StringPrototypeCharCodeAt, StringPrototypeIncludes,
  StringPrototypeSlice, StringPrototypeToLowerCase, Uint16Array, Uint8Array, lengthOf, split, subarray,
} = primordials;
const { askOps } = internal;
const { ask, decode, encode } = host;

// ---- percent-encode sets: one bit each in a table of ASCII ----

const C0 = 1;
const FRAGMENT = 2;
const QUERY = 4;
const SPECIAL_QUERY = 8;
const PATH = 16;
const USERINFO = 32;
const COMPONENT = 64;
const FORM = 128;

const sets = new Array(128).fill(0); // a snapshot cannot have a typed array of this size (v8x.Snapshot)
function put(mask, chars) {
  for (const c of chars) sets[c.charCodeAt(0)] |= mask;
}
for (let c = 0; c < 128; c++) if (c < 32 || c === 127) sets[c] = 255;
put(FRAGMENT, ' "<>`');
put(QUERY | SPECIAL_QUERY | PATH | USERINFO | COMPONENT | FORM, ' "#<>');
put(SPECIAL_QUERY, "'");
put(PATH | USERINFO | COMPONENT | FORM, "?^`{}");
put(USERINFO | COMPONENT | FORM, "/:;=@[\\]|");
put(COMPONENT | FORM, "$%&+,");
put(FORM, "!'()~");

const hex = "0123456789ABCDEF";

// percentEncode encodes the characters of a set, and all characters outside ASCII as UTF-8. For forms, a space
// becomes a plus.
function percentEncode(text, set) {
  let at = 0;
  for (; at < text.length; at++) {
    const c = StringPrototypeCharCodeAt(text, at);
    if (c > 127 || (sets[c] & set) !== 0) break;
  }
  if (at === text.length) return text;
  let out = StringPrototypeSlice(text, 0, at);
  const bytes = encode(StringPrototypeSlice(text, at));
  for (let i = 0; i < lengthOf(bytes); i++) {
    const b = bytes[i];
    if (b === 32 && set === FORM) out += "+";
    else if (b > 127 || (sets[b] & set) !== 0) out += "%" + hex[b >> 4] + hex[b & 15];
    else out += StringFromCharCode(b);
  }
  return out;
}

function hexValue(c) {
  if (c >= 48 && c <= 57) return c - 48;
  if (c >= 65 && c <= 70) return c - 55;
  if (c >= 97 && c <= 102) return c - 87;
  return -1;
}

// percentDecode returns the bytes of percent-decoded UTF-8 bytes.
function percentDecode(bytes) {
  const out = new Uint8Array(lengthOf(bytes));
  let n = 0;
  for (let i = 0; i < lengthOf(bytes); i++) {
    const high = bytes[i] === 37 && i + 2 < lengthOf(bytes) ? hexValue(bytes[i + 1]) : -1;
    const low = high < 0 ? -1 : hexValue(bytes[i + 2]);
    if (low < 0) out[n++] = bytes[i];
    else {
      out[n++] = high * 16 + low;
      i += 2;
    }
  }
  return subarray(out, 0, n);
}

// ---- hosts ----

const forbiddenHost = "\0\t\n\r #/:<>?@[\\]^|";

function isForbiddenHost(text) {
  for (let i = 0; i < text.length; i++) {
    if (StringPrototypeIncludes(forbiddenHost, text[i])) return true;
  }
  return false;
}

function isForbiddenDomain(text) {
  for (let i = 0; i < text.length; i++) {
    const c = StringPrototypeCharCodeAt(text, i);
    if (c <= 31 || c === 37 || c === 127) return true;
  }
  return isForbiddenHost(text);
}

function isASCII(text) {
  for (let i = 0; i < text.length; i++) {
    if (StringPrototypeCharCodeAt(text, i) > 127) return false;
  }
  return true;
}

// A host has at most 253 letters as ASCII. Each letter of the input makes at least a quarter of an ASCII letter. The
// exceptions are the ignored code points, of which there can be any number. The code removes the ignored ones here,
// where a limit can stop it. It does not ask Go about a domain that is still longer than the limit.
const LONG_DOMAIN = 1024;
const MOST_ASKED = 65536;

// isIgnored reports whether UTS 46 ignores a code unit, or the code point that begins with it (with the unit after
// it).
function isIgnored(c, next) {
  if (c < 0x2000) {
    return c === 0xad || c === 0x34f || c === 0x115f || c === 0x1160 || c === 0x17b4 || c === 0x17b5 || (c >= 0x180b && c <= 0x180f);
  }
  if (c < 0xd800) return c === 0x200b || (c >= 0x2060 && c <= 0x2064) || (c >= 0x206a && c <= 0x206f) || c === 0x3164;
  if (c === 0xdb40) return next >= 0xdd00 && next <= 0xddef;
  if (c === 0xd82f) return next >= 0xdca0 && next <= 0xdca3;
  if (c === 0xd834) return next >= 0xdd73 && next <= 0xdd7a;
  return (c >= 0xfe00 && c <= 0xfe0f) || c === 0xfeff || c === 0xffa0;
}

// withoutIgnored returns a long domain without its ignored code points. It returns "" when the rest is too long for a
// host.
function withoutIgnored(domain) {
  let out = "";
  let from = 0;
  for (let i = 0; i < domain.length; i++) {
    const c = StringPrototypeCharCodeAt(domain, i);
    if (c < 0xad || !isIgnored(c, i + 1 < domain.length ? StringPrototypeCharCodeAt(domain, i + 1) : 0)) continue;
    out += StringPrototypeSlice(domain, from, i);
    if (c >= 0xd800 && c < 0xdc00) i++;
    from = i + 1;
    if (out.length > MOST_ASKED) return "";
  }
  return domain.length - from + out.length > MOST_ASKED ? "" : out + StringPrototypeSlice(domain, from);
}

// domainToASCII applies UTS 46 to domains with more than ASCII. It only converts others to lower case, also those with
// labels that look like punycode (whatwg/url#914).
function domainToASCII(domain) {
  if (isASCII(domain)) return StringPrototypeToLowerCase(domain);
  try {
    return ask(askOps.DOMAIN_TO_ASCII, domain.length > LONG_DOMAIN ? withoutIgnored(domain) : domain);
  } catch {
    return "";
  }
}

// parseHost returns a host in its serialised form, or null.
function parseHost(input, isOpaque) {
  if (input[0] === "[") {
    if (input[input.length - 1] !== "]") return null;
    return parseIPv6(StringPrototypeSlice(input, 1, input.length - 1));
  }
  if (isOpaque) return isForbiddenHost(input) ? null : percentEncode(input, C0);
  let domain = input;
  if (StringPrototypeIncludes(input, "%")) domain = decode(percentDecode(encode(input)), false);
  const ascii = domainToASCII(domain);
  if (ascii === "" || isForbiddenDomain(ascii)) return null;
  return endsInNumber(ascii) ? parseIPv4(ascii) : ascii;
}

// ---- IPv4 ----

function isDigits(text) {
  for (let i = 0; i < text.length; i++) {
    if (text[i] < "0" || text[i] > "9") return false;
  }
  return text.length > 0;
}

function endsInNumber(text) {
  const parts = split(text, ".");
  let last = parts.length - 1;
  if (parts[last] === "") {
    if (parts.length === 1) return false;
    last--;
  }
  return isDigits(parts[last]) || parseIPv4Number(parts[last]) >= 0;
}

// parseIPv4Number returns a number, or -1.
function parseIPv4Number(text) {
  if (text === "") return -1;
  let radix = 10;
  let at = 0;
  if (text.length >= 2 && text[0] === "0" && (text[1] === "x" || text[1] === "X")) {
    radix = 16;
    at = 2;
  } else if (text.length >= 2 && text[0] === "0") {
    radix = 8;
    at = 1;
  }
  let value = 0;
  for (; at < text.length; at++) {
    const digit = hexValue(StringPrototypeCharCodeAt(text, at));
    if (digit < 0 || digit >= radix) return -1;
    value = value * radix + digit;
  }
  return value;
}

function parseIPv4(text) {
  const parts = split(text, ".");
  if (parts[parts.length - 1] === "" && parts.length > 1) parts.length--;
  if (parts.length > 4) return null;
  let address = 0;
  for (let i = 0; i < parts.length; i++) {
    const n = parseIPv4Number(parts[i]);
    if (n < 0) return null;
    if (i < parts.length - 1) {
      if (n > 255) return null;
      address += n * 256 ** (3 - i);
    } else {
      if (n >= 256 ** (5 - parts.length)) return null;
      address += n;
    }
  }
  return `${MathFloor(address / 16777216)}.${MathFloor(address / 65536) % 256}.${MathFloor(address / 256) % 256}.${address % 256}`;
}

// ---- IPv6 ----

function digitAt(text, at) {
  return at < text.length && text[at] >= "0" && text[at] <= "9";
}

// parseIPv6 returns the compressed form in brackets, or null.
function parseIPv6(text) {
  const pieces = new Uint16Array(8);
  let index = 0;
  let compress = -1;
  let at = 0;
  if (text[at] === ":") {
    if (text[1] !== ":") return null;
    at = 2;
    compress = ++index;
  }
  while (at < text.length) {
    if (index === 8) return null;
    if (text[at] === ":") {
      if (compress !== -1) return null;
      at++;
      compress = ++index;
      continue;
    }
    let value = 0;
    let length = 0;
    while (length < 4 && at < text.length && hexValue(StringPrototypeCharCodeAt(text, at)) >= 0) {
      value = value * 16 + hexValue(StringPrototypeCharCodeAt(text, at));
      at++;
      length++;
    }
    if (text[at] === "." && at < text.length) {
      if (length === 0 || index > 6 || !parseEmbedded(text, at - length, pieces, index)) return null;
      index += 2;
      break;
    }
    if (at < text.length) {
      if (text[at] !== ":") return null;
      at++;
      if (at === text.length) return null;
    }
    pieces[index++] = value;
  }
  if (compress !== -1) expand(pieces, index, compress);
  else if (index !== 8) return null;
  return serializeIPv6(pieces);
}

// parseEmbedded reads the dotted IPv4 address at the end of an IPv6 address into two pieces.
function parseEmbedded(text, at, pieces, index) {
  let seen = 0;
  while (at < text.length) {
    if (seen > 0) {
      if (text[at] !== "." || seen >= 4) return false;
      at++;
    }
    if (!digitAt(text, at)) return false;
    let value = -1;
    while (digitAt(text, at)) {
      const n = StringPrototypeCharCodeAt(text, at) - 48;
      if (value === -1) value = n;
      else if (value === 0) return false;
      else value = value * 10 + n;
      if (value > 255) return false;
      at++;
    }
    const piece = index + (seen >> 1);
    pieces[piece] = pieces[piece] * 256 + value;
    seen++;
  }
  return seen === 4;
}

function expand(pieces, index, compress) {
  let swaps = index - compress;
  let to = 7;
  while (to !== 0 && swaps > 0) {
    const from = compress + swaps - 1;
    const value = pieces[to];
    pieces[to] = pieces[from];
    pieces[from] = value;
    to--;
    swaps--;
  }
}

function serializeIPv6(pieces) {
  let best = -1;
  let bestLength = 1;
  for (let i = 0; i < 8; i++) {
    let n = 0;
    while (i + n < 8 && pieces[i + n] === 0) n++;
    if (n > bestLength) {
      best = i;
      bestLength = n;
    }
    if (n > 0) i += n - 1;
  }
  let out = "[";
  for (let i = 0; i < 8; i++) {
    if (i === best) {
      out += i === 0 ? "::" : ":";
      i += bestLength - 1;
      continue;
    }
    out += NumberPrototypeToString(pieces[i], 16);
    if (i !== 7) out += ":";
  }
  return `${out}]`;
}

internal.urlParts = {
  __proto__: null, C0, FRAGMENT, QUERY, SPECIAL_QUERY, PATH, USERINFO, COMPONENT, FORM, percentEncode, percentDecode, parseHost,
  hexValue,
};
