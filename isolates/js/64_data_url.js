// 64_data_url.js makes responses of data: URLs, as the Fetch standard's data: URL processor says.

"use strict";

const { StringPrototypeCharCodeAt, StringPrototypeIndexOf, StringPrototypeSlice, StringPrototypeToLowerCase, Uint8Array, subarray } = primordials;
const { ResponseState, fromForgivingBase64, fromUnits, listFrom, parseMimeType, serializeMimeType } = internal;

function hexDigit(c) {
  if (c >= 48 && c <= 57) return c - 48;
  c |= 32;
  return c >= 97 && c <= 102 ? c - 87 : -1;
}

// percentDecode takes text of a URL, which is ASCII.
function percentDecode(text) {
  const out = new Uint8Array(text.length);
  let n = 0;
  for (let i = 0; i < text.length; i++) {
    let c = StringPrototypeCharCodeAt(text, i);
    if (c === 37 && i + 2 < text.length) {
      const high = hexDigit(StringPrototypeCharCodeAt(text, i + 1));
      const low = hexDigit(StringPrototypeCharCodeAt(text, i + 2));
      if (high !== -1 && low !== -1) {
        c = high * 16 + low;
        i += 2;
      }
    }
    out[n++] = c;
  }
  return subarray(out, 0, n);
}

function isSpace(c) {
  return c === 32 || c === 9 || c === 10 || c === 12 || c === 13;
}

function trim(text) {
  let start = 0;
  let end = text.length;
  while (start < end && isSpace(StringPrototypeCharCodeAt(text, start))) start++;
  while (end > start && isSpace(StringPrototypeCharCodeAt(text, end - 1))) end--;
  return StringPrototypeSlice(text, start, end);
}

// beforeBase64 is where the semicolon is of a type that ends with ";base64", or -1.
function beforeBase64(type) {
  let at = type.length - 6;
  if (at < 1 || StringPrototypeToLowerCase(StringPrototypeSlice(type, at)) !== "base64") return -1;
  while (at > 0 && type[at - 1] === " ") at--;
  return at > 0 && type[at - 1] === ";" ? at - 1 : -1;
}

// dataResponse gives the state of a Response, or null when the URL, which is serialised and has no fragment, is not well-formed.
internal.dataResponse = (url) => {
  const comma = StringPrototypeIndexOf(url, ",");
  if (comma === -1) return null;
  let type = trim(StringPrototypeSlice(url, 5, comma));
  let body = percentDecode(StringPrototypeSlice(url, comma + 1));
  const semicolon = beforeBase64(type);
  if (semicolon !== -1) {
    body = fromForgivingBase64(fromUnits(body));
    if (body === null) return null;
    type = StringPrototypeSlice(type, 0, semicolon);
  }
  if (type[0] === ";") type = `text/plain${type}`;
  const mime = parseMimeType(type);
  const s = new ResponseState(200, null, body);
  s.statusText = "OK";
  s.type = "basic";
  s.url = url;
  s.headers = internal.newHeaders(listFrom(["content-type", mime === null ? "text/plain;charset=US-ASCII" : serializeMimeType(mime)]), true);
  s.immutable = true;
  return s;
};
