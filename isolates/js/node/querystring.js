// node/querystring.js is node:querystring.

"use strict";

const {
  ArrayIsArray, NumberIsFinite, ObjectKeys, StringPrototypeCharCodeAt, StringPrototypeIndexOf, StringPrototypeSlice, String, URIError,
  DecodeURIComponent, EncodeURIComponent,
} = primordials;
const { builtin, coded, put } = internal.node;
const { Buffer } = builtin("buffer");

function escape(text) {
  if (typeof text !== "string") text = typeof text === "object" ? String(text) : `${text}`;
  let out;
  try {
    out = EncodeURIComponent(text);
  } catch {
    throw coded(URIError, "ERR_INVALID_URI", "URI malformed");
  }
  return out;
}

// unescapeBuffer decodes what is escaped, and leaves the rest.
function unescapeBuffer(text) {
  const out = Buffer.allocUnsafe(text.length);
  let at = 0;
  for (let i = 0; i < text.length; i++) {
    let c = StringPrototypeCharCodeAt(text, i);
    if (c === 37 && i + 2 < text.length) {
      const n = hex(StringPrototypeCharCodeAt(text, i + 1)) * 16 + hex(StringPrototypeCharCodeAt(text, i + 2));
      if (n >= 0) {
        c = n;
        i += 2;
      }
    }
    out[at++] = c;
  }
  return at === out.length ? out : out.slice(0, at);
}

function hex(c) {
  return c >= 48 && c <= 57 ? c - 48 : c >= 65 && c <= 70 ? c - 55 : c >= 97 && c <= 102 ? c - 87 : -1000;
}

function unescape(text) {
  try {
    return DecodeURIComponent(text);
  } catch {
    return unescapeBuffer(text).toString();
  }
}

function primitive(value) {
  if (typeof value === "string") return value;
  if (typeof value === "number") return NumberIsFinite(value) ? `${value}` : "";
  if (typeof value === "bigint" || typeof value === "boolean") return `${value}`;
  return "";
}

function stringify(object, sep, eq, options) {
  sep ||= "&";
  eq ||= "=";
  const encode = typeof options?.encodeURIComponent === "function" ? options.encodeURIComponent : module.escape;
  if (object === null || typeof object !== "object") return "";
  const keys = ObjectKeys(object);
  let out = "";
  for (let i = 0; i < keys.length; i++) {
    const value = object[keys[i]];
    const name = encode(primitive(keys[i])) + eq;
    if (ArrayIsArray(value)) {
      for (let k = 0; k < value.length; k++) out += (out === "" ? "" : sep) + name + encode(primitive(value[k]));
    } else out += (out === "" ? "" : sep) + name + encode(primitive(value));
  }
  return out;
}

function plusToSpace(text) {
  let out = "";
  let plain = 0;
  for (let i = StringPrototypeIndexOf(text, "+"); i !== -1; i = StringPrototypeIndexOf(text, "+", i + 1)) {
    out += `${StringPrototypeSlice(text, plain, i)} `;
    plain = i + 1;
  }
  return out + StringPrototypeSlice(text, plain);
}

function parse(text, sep, eq, options) {
  const out = { __proto__: null };
  if (typeof text !== "string" || text.length === 0) return out;
  sep = sep ? `${sep}` : "&";
  eq = eq ? `${eq}` : "=";
  let most = typeof options?.maxKeys === "number" ? (options.maxKeys > 0 ? options.maxKeys : -1) : 1000;
  const decode = typeof options?.decodeURIComponent === "function" ? options.decodeURIComponent : module.unescape;
  const decoded = (part) => {
    const plain = plusToSpace(part);
    if (decode === module.unescape && StringPrototypeIndexOf(plain, "%") === -1) return plain;
    try {
      return decode(plain);
    } catch {
      return unescape(plain);
    }
  };
  for (let at = 0; at <= text.length;) {
    let end = StringPrototypeIndexOf(text, sep, at);
    if (end === -1) end = text.length;
    if (end > at) {
      const pair = StringPrototypeSlice(text, at, end);
      const mid = StringPrototypeIndexOf(pair, eq);
      const name = decoded(mid === -1 ? pair : StringPrototypeSlice(pair, 0, mid));
      const value = mid === -1 ? "" : decoded(StringPrototypeSlice(pair, mid + eq.length));
      if (out[name] === undefined) out[name] = value;
      else if (ArrayIsArray(out[name])) out[name].push(value);
      else out[name] = [out[name], value];
      if (most > 0 && --most === 0) break;
    }
    at = end + sep.length;
  }
  return out;
}

const module = put({}, {
  unescapeBuffer(text) { return unescapeBuffer(text); },
  unescape(text) { return unescape(text); },
  escape(text) { return escape(text); },
  stringify, encode: stringify, parse, decode: parse,
});
internal.nodeModules.querystring = module;
