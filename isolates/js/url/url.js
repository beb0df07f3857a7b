// url/url.js is the URL class of the URL standard. It uses the records of url/parser.js.

"use strict";

const { List, StringPrototypeCharCodeAt, StringPrototypeSlice, StringPrototypeStartsWith, TypeError } = primordials;
const {
  addInspector, defineInterface, illegalInvocation, isObject, parseInto, parseURL, requireArguments, toUSVString,
} = internal;
const { USERINFO, isOpaque, isSpecial, percentEncode } = internal.urlParts;

function serializePath(url) {
  if (isOpaque(url)) return url.path;
  let out = "";
  for (let i = 0; i < url.path.length; i++) out += `/${url.path[i]}`;
  return out;
}

function serializeURL(url, withoutFragment = false) {
  let out = `${url.scheme}:`;
  if (url.host !== null) {
    out += "//";
    if (url.username !== "" || url.password !== "") {
      out += url.username;
      if (url.password !== "") out += `:${url.password}`;
      out += "@";
    }
    out += url.host;
    if (url.port !== null) out += `:${url.port}`;
  } else if (!isOpaque(url) && url.path.length > 1 && url.path[0] === "") out += "/.";
  out += serializePath(url);
  if (url.query !== null) out += `?${url.query}`;
  if (!withoutFragment && url.fragment !== null) out += `#${url.fragment}`;
  return out;
}

function serializeOrigin(url) {
  if (url.scheme === "blob") {
    if (!isOpaque(url)) return "null";
    const inner = parseURL(url.path, null);
    return inner !== null && (inner.scheme === "http" || inner.scheme === "https") ? serializeOrigin(inner) : "null";
  }
  if (!isSpecial(url) || url.scheme === "file") return "null";
  return `${url.scheme}://${url.host}${url.port === null ? "" : `:${url.port}`}`;
}

// parseWithBase parses both arguments of the constructor. The first is already text. It returns null if either parse
// fails.
function parseWithBase(text, base) {
  if (base === undefined) return parseURL(text, null);
  const baseRecord = parseURL(toUSVString(base), null);
  return baseRecord === null ? null : parseURL(text, baseRecord);
}

const FROM_RECORD = { __proto__: null };
let recordOf;

class URL {
  #record;
  #params = null;
  constructor(url, base = undefined) {
    if (url === FROM_RECORD) {
      this.#record = base;
      return;
    }
    requireArguments(arguments.length, 1, "new URL");
    const text = toUSVString(url);
    const record = parseWithBase(text, base);
    if (record === null) throw new TypeError(`Invalid URL: ${internal.inspectBrief(text)}`);
    this.#record = record;
  }
  static {
    recordOf = (value) => {
      if (!isObject(value) || !(#record in value)) throw illegalInvocation("URL");
      return value.#record;
    };
    internal.isURL = (value) => isObject(value) && #record in value;
    internal.updateURLQuery = (value, query) => {
      value.#record.query = query === "" ? null : query;
    };
  }
  static parse(url, base = undefined) {
    requireArguments(arguments.length, 1, "URL.parse");
    const record = parseWithBase(toUSVString(url), base);
    return record === null ? null : new URL(FROM_RECORD, record);
  }
  static canParse(url, base = undefined) {
    requireArguments(arguments.length, 1, "URL.canParse");
    return parseWithBase(toUSVString(url), base) !== null;
  }
  static createObjectURL(obj) {
    requireArguments(arguments.length, 1, "URL.createObjectURL");
    return internal.createBlobURL(obj);
  }
  static revokeObjectURL(url) {
    requireArguments(arguments.length, 1, "URL.revokeObjectURL");
    internal.revokeBlobURL(toUSVString(url));
  }
  get href() { return serializeURL(recordOf(this)); }
  set href(value) {
    recordOf(this);
    const record = parseURL(toUSVString(value), null);
    if (record === null) throw new TypeError("Invalid URL");
    this.#record = record;
    this.#queryChanged();
  }
  get origin() { return serializeOrigin(recordOf(this)); }
  get protocol() { return `${recordOf(this).scheme}:`; }
  set protocol(value) {
    const url = recordOf(this);
    parseInto(url, `${toUSVString(value)}:`, "schemeStart");
  }
  get username() { return recordOf(this).username; }
  set username(value) {
    const url = recordOf(this);
    const text = toUSVString(value);
    if (!cannotHaveCredentials(url)) url.username = percentEncode(text, USERINFO);
  }
  get password() { return recordOf(this).password; }
  set password(value) {
    const url = recordOf(this);
    const text = toUSVString(value);
    if (!cannotHaveCredentials(url)) url.password = percentEncode(text, USERINFO);
  }
  get host() {
    const { host, port } = recordOf(this);
    if (host === null) return "";
    return port === null ? host : `${host}:${port}`;
  }
  set host(value) {
    const url = recordOf(this);
    const text = toUSVString(value);
    if (!isOpaque(url)) parseInto(url, text, "host");
  }
  get hostname() { return recordOf(this).host ?? ""; }
  set hostname(value) {
    const url = recordOf(this);
    const text = toUSVString(value);
    if (!isOpaque(url)) parseInto(url, text, "hostname");
  }
  get port() {
    const { port } = recordOf(this);
    return port === null ? "" : `${port}`;
  }
  set port(value) {
    const url = recordOf(this);
    const text = toUSVString(value);
    if (cannotHaveCredentials(url)) return;
    if (text === "") url.port = null;
    else parseInto(url, text, "port");
  }
  get pathname() { return serializePath(recordOf(this)); }
  set pathname(value) {
    const url = recordOf(this);
    const text = toUSVString(value);
    if (isOpaque(url)) return;
    url.path = new List();
    parseInto(url, text, "pathStart");
  }
  get search() {
    const { query } = recordOf(this);
    return query === null || query === "" ? "" : `?${query}`;
  }
  set search(value) {
    const url = recordOf(this);
    const text = toUSVString(value);
    if (text === "") url.query = null;
    else {
      url.query = "";
      parseInto(url, text[0] === "?" ? StringPrototypeSlice(text, 1) : text, "query");
    }
    this.#queryChanged();
  }
  get searchParams() {
    const { query } = recordOf(this);
    return (this.#params ??= internal.newSearchParams(this, query ?? ""));
  }
  get hash() {
    const { fragment } = recordOf(this);
    return fragment === null || fragment === "" ? "" : `#${fragment}`;
  }
  set hash(value) {
    const url = recordOf(this);
    const text = toUSVString(value);
    if (text === "") url.fragment = null;
    else {
      url.fragment = "";
      parseInto(url, text[0] === "#" ? StringPrototypeSlice(text, 1) : text, "fragment");
    }
  }
  toJSON() { return serializeURL(recordOf(this)); }
  toString() { return serializeURL(recordOf(this)); }
  #queryChanged() {
    if (this.#params !== null) internal.refillSearchParams(this.#params, this.#record.query ?? "");
  }
}
defineInterface(URL, "URL");

function cannotHaveCredentials(url) {
  return url.host === null || url.host === "" || url.scheme === "file";
}

addInspector(internal.isURL, (value) => {
  const url = recordOf(value);
  return ["href", serializeURL(url), "origin", serializeOrigin(url), "protocol", `${url.scheme}:`, "username", url.username, "password", url.password,
    "host", url.port === null ? url.host ?? "" : `${url.host}:${url.port}`, "hostname", url.host ?? "", "port", url.port === null ? "" : `${url.port}`,
    "pathname", serializePath(url), "search", url.query === null || url.query === "" ? "" : `?${url.query}`,
    "hash", url.fragment === null || url.fragment === "" ? "" : `#${url.fragment}`];
});

// ---- the URL of an event ----

// isPlainURL reports whether a URL is certainly its own normal form. That is the usual case, and it needs no parse.
function isPlainURL(text) {
  let at = StringPrototypeStartsWith(text, "https://") ? 8 : StringPrototypeStartsWith(text, "http://") ? 7 : 0;
  if (at === 0) return false;
  const start = at;
  let c = 0;
  let last = 0;
  for (; at < text.length; at++, last = c) {
    c = StringPrototypeCharCodeAt(text, at);
    if (c === 47) break;
    const letter = c >= 97 && c <= 122;
    if (c === 120 && last === 48) return false; // possibly a hexadecimal IPv4 address
    if (!letter && !(c >= 48 && c <= 57) && !(c === 46 && last !== 46 && at > start) && c !== 45) return false;
    if (c === 45 && last === 45) return false;
  }
  if (at === text.length || !(last >= 97 && last <= 122)) return false;
  return isPlainPath(text, at);
}

function isPlainPath(text, at) {
  let last = 0;
  for (; at < text.length; at++) {
    const c = StringPrototypeCharCodeAt(text, at);
    const word = (c >= 97 && c <= 122) || (c >= 65 && c <= 90) || (c >= 48 && c <= 57);
    if (!word) {
      if (c === 46) {
        if (last === 47) return false;
      } else if (c !== 47 && c !== 45 && c !== 95 && c !== 61 && c !== 38 && c !== 43 && c !== 44 && c !== 58 && c !== 64 &&
        c !== 126 && c !== 63) return false;
    }
    last = c;
  }
  return true;
}

internal.normalizeURL = (text) => {
  if (isPlainURL(text)) return text;
  const record = parseURL(toUSVString(text), null);
  return record === null ? text : serializeURL(record);
};

primordials.ObjectAssign(internal, { serializeOrigin, serializePath, serializeURL });
