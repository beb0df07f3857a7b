// fetch/data_url.js makes responses from data: URLs, as the Fetch standard's data: URL processor does.

"use strict";

const { StringPrototypeIndexOf, StringPrototypeSlice, StringPrototypeToLowerCase } = primordials;
const { ResponseState, fromForgivingBase64, fromUnits, listFrom, parseMimeType, serializeMimeType } = internal;
const { percentDecode } = internal.urlParts;
const { trim } = internal.asciiSpace;
const { encode } = host;

// beforeBase64 returns the index of the semicolon in a type that ends with ";base64", or -1.
function beforeBase64(type) {
  let at = type.length - 6;
  if (at < 1 || StringPrototypeToLowerCase(StringPrototypeSlice(type, at)) !== "base64") return -1;
  while (at > 0 && type[at - 1] === " ") at--;
  return at > 0 && type[at - 1] === ";" ? at - 1 : -1;
}

// dataResponse returns the state of a Response, or null when the URL is not well-formed. The URL is serialised and
// has no fragment.
internal.dataResponse = (url) => {
  const comma = StringPrototypeIndexOf(url, ",");
  if (comma === -1) return null;
  let type = trim(StringPrototypeSlice(url, 5, comma));
  let body = percentDecode(encode(StringPrototypeSlice(url, comma + 1)));
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
