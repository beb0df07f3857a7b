// url/record.js holds the record of a parsed URL, and small functions that check text and records for the parser.

"use strict";

const { List, StringPrototypeCharCodeAt, StringPrototypeSlice, StringPrototypeToLowerCase, sealedProto } = primordials;

const specialPorts = { __proto__: null, "ftp": 21, "file": null, "http": 80, "https": 443, "ws": 80, "wss": 443 };

class URLRecord {
  scheme = "";
  username = "";
  password = "";
  host = null;
  port = null;
  path = new List(); // or a string if the path is opaque
  query = null;
  fragment = null;
}
sealedProto(URLRecord);

function isSpecial(url) {
  return specialPorts[url.scheme] !== undefined;
}

function isOpaque(url) {
  return typeof url.path === "string";
}

function isAlpha(c) {
  return (c >= "a" && c <= "z") || (c >= "A" && c <= "Z");
}

function isDigit(c) {
  return c >= "0" && c <= "9" && c.length === 1;
}

function isDriveLetter(text) {
  return text.length === 2 && isAlpha(text[0]) && (text[1] === ":" || text[1] === "|");
}

function isNormalizedDriveLetter(text) {
  return text.length === 2 && isAlpha(text[0]) && text[1] === ":";
}

function startsWithDriveLetter(text, at) {
  if (text.length - at < 2 || !isDriveLetter(StringPrototypeSlice(text, at, at + 2))) return false;
  if (text.length - at === 2) return true;
  const c = text[at + 2];
  return c === "/" || c === "\\" || c === "?" || c === "#";
}

function isSingleDot(segment) {
  return segment === "." || StringPrototypeToLowerCase(segment) === "%2e";
}

function isDoubleDot(segment) {
  if (segment === "..") return true;
  const lower = StringPrototypeToLowerCase(segment);
  return lower === ".%2e" || lower === "%2e." || lower === "%2e%2e";
}

function shorten(url) {
  const { path } = url;
  if (url.scheme === "file" && path.length === 1 && isNormalizedDriveLetter(path[0])) return;
  if (path.length > 0) path.length--;
}

function copyPath(path) {
  if (typeof path === "string") return path;
  const out = new List();
  for (let i = 0; i < path.length; i++) out[i] = path[i];
  return out;
}

// clean removes tabs and newlines everywhere and, for whole URLs, controls and spaces at both ends.
function clean(text, ends) {
  let start = 0;
  let end = text.length;
  if (ends) {
    while (start < end && StringPrototypeCharCodeAt(text, start) <= 32) start++;
    while (end > start && StringPrototypeCharCodeAt(text, end - 1) <= 32) end--;
  }
  let out = "";
  let plain = start;
  for (let i = start; i < end; i++) {
    const c = StringPrototypeCharCodeAt(text, i);
    if (c !== 9 && c !== 10 && c !== 13) continue;
    out += StringPrototypeSlice(text, plain, i);
    plain = i + 1;
  }
  return plain === 0 && end === text.length ? text : out + StringPrototypeSlice(text, plain, end);
}

primordials.ObjectAssign(internal.urlParts, {
  URLRecord, clean, copyPath, isAlpha, isDigit, isDoubleDot, isDriveLetter, isNormalizedDriveLetter, isOpaque,
  isSingleDot, isSpecial, shorten, specialPorts, startsWithDriveLetter,
});
