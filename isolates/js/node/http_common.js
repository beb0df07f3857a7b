// node/http_common.js has what messages of node:http share: names, the checks of headers, and sockets that are none.

"use strict";

const {
  ArrayIsArray, List, Map, MapPrototypeDelete, MapPrototypeForEach, MapPrototypeGet, MapPrototypeHas, MapPrototypeSet, ObjectDefineProperty,
  RegExpPrototypeExec, StringPrototypeToLowerCase, TypeError, sealedProto,
} = primordials;
const { isToken } = internal;
const { builtin, coded, put } = internal.node;
const EventEmitter = builtin("events");

const METHODS = [
  "ACL", "BIND", "CHECKOUT", "CONNECT", "COPY", "DELETE", "GET", "HEAD", "LINK", "LOCK", "M-SEARCH", "MERGE", "MKACTIVITY",
  "MKCALENDAR", "MKCOL", "MOVE", "NOTIFY", "OPTIONS", "PATCH", "POST", "PROPFIND", "PROPPATCH", "PURGE", "PUT", "QUERY", "REBIND",
  "REPORT", "SEARCH", "SOURCE", "SUBSCRIBE", "TRACE", "UNBIND", "UNLINK", "UNLOCK", "UNSUBSCRIBE",
];

const STATUS_CODES = {
  100: "Continue", 101: "Switching Protocols", 102: "Processing", 103: "Early Hints", 200: "OK", 201: "Created", 202: "Accepted",
  203: "Non-Authoritative Information", 204: "No Content", 205: "Reset Content", 206: "Partial Content", 207: "Multi-Status",
  208: "Already Reported", 226: "IM Used", 300: "Multiple Choices", 301: "Moved Permanently", 302: "Found", 303: "See Other",
  304: "Not Modified", 305: "Use Proxy", 307: "Temporary Redirect", 308: "Permanent Redirect", 400: "Bad Request",
  401: "Unauthorized", 402: "Payment Required", 403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed",
  406: "Not Acceptable", 407: "Proxy Authentication Required", 408: "Request Timeout", 409: "Conflict", 410: "Gone",
  411: "Length Required", 412: "Precondition Failed", 413: "Payload Too Large", 414: "URI Too Long", 415: "Unsupported Media Type",
  416: "Range Not Satisfiable", 417: "Expectation Failed", 418: "I'm a Teapot", 421: "Misdirected Request",
  422: "Unprocessable Entity", 423: "Locked", 424: "Failed Dependency", 425: "Too Early", 426: "Upgrade Required",
  428: "Precondition Required", 429: "Too Many Requests", 431: "Request Header Fields Too Large",
  451: "Unavailable For Legal Reasons", 500: "Internal Server Error", 501: "Not Implemented", 502: "Bad Gateway",
  503: "Service Unavailable", 504: "Gateway Timeout", 505: "HTTP Version Not Supported", 506: "Variant Also Negotiates",
  507: "Insufficient Storage", 508: "Loop Detected", 509: "Bandwidth Limit Exceeded", 510: "Not Extended",
  511: "Network Authentication Required",
};

const wrongText = /[^\t\x20-\x7e\x80-\xff]/;

function validateHeaderName(name, label = "Header name") {
  if (typeof name !== "string" || !isToken(name)) {
    throw coded(TypeError, "ERR_INVALID_HTTP_TOKEN", `${label} must be a valid HTTP token ["${name}"]`);
  }
}

function validateHeaderValue(name, value) {
  if (value === undefined) throw coded(TypeError, "ERR_HTTP_INVALID_HEADER_VALUE", `Invalid value "${value}" for header "${name}"`);
  if (isWrongText(`${value}`)) throw coded(TypeError, "ERR_INVALID_CHAR", `Invalid character in header content ["${name}"]`);
}

function isWrongText(text) { return RegExpPrototypeExec(wrongText, text) !== null; }

// own defines a member that scripts see, whatever they have made of the prototype of all objects.
function own(target, name, value) {
  ObjectDefineProperty(target, name, { __proto__: null, value, writable: true, enumerable: true, configurable: true });
  return target;
}

// Sent are the headers of a message that is sent: names in the order and with the spelling of the code.
class Sent {
  #all = new Map(); // lower-case name → List of the name and its value: a text, or a list of texts
  set(name, value) {
    const pair = new List();
    pair[0] = name;
    pair[1] = value;
    MapPrototypeSet(this.#all, StringPrototypeToLowerCase(name), pair);
  }
  get(name) { return MapPrototypeGet(this.#all, StringPrototypeToLowerCase(name))?.[1]; }
  has(name) { return MapPrototypeHas(this.#all, StringPrototypeToLowerCase(name)); }
  delete(name) { MapPrototypeDelete(this.#all, StringPrototypeToLowerCase(name)); }
  each(f) { MapPrototypeForEach(this.#all, (pair, lower) => { f(lower, pair[0], pair[1]); }); }
  // list returns the header list of a Request or Response, without what describes a connection.
  list() {
    const list = new internal.HeaderList();
    this.each((lower, name, value) => {
      if (ofConnection[lower] === true) return;
      const add = (text) => { internal.listAppend(list, lower, internal.cleanValue(`${text}`, lower)); };
      if (ArrayIsArray(value)) for (let i = 0; i < value.length; i++) add(value[i]);
      else add(value);
      if (lower !== name) {
        list.spelled ??= new Map();
        MapPrototypeSet(list.spelled, lower, name);
      }
    });
    return list;
  }
}
sealedProto(Sent);

const ofConnection = {
  __proto__: null, connection: true, host: true, "keep-alive": true, "proxy-connection": true, te: true, trailer: true, "transfer-encoding": true,
  upgrade: true,
};

// Connection is the socket of a message. There is none: it tells what code asks of one, and does nothing.
class Connection extends EventEmitter {
  connecting = false;
  destroyed = false;
  readable = true;
  writable = true;
  encrypted;
  authorized;
  timeout = 0;
  bytesRead = 0;
  bytesWritten = 0;
  remoteAddress;
  remoteFamily = undefined;
  remotePort = undefined;
  localAddress = undefined;
  localPort = undefined;
  parser = null;
  constructor(encrypted, remoteAddress = undefined) {
    super();
    this.encrypted = encrypted;
    this.authorized = encrypted;
    this.remoteAddress = remoteAddress;
  }
  setTimeout() { return this; }
  setNoDelay() { return this; }
  setKeepAlive() { return this; }
  ref() { return this; }
  unref() { return this; }
  cork() {}
  uncork() {}
  pause() { return this; }
  resume() { return this; }
  address() { return {}; }
  getPeerCertificate() { return {}; }
  destroy() {
    this.destroyed = true;
    return this;
  }
  end() { return this; }
  destroySoon() {}
}

// bodyLength is the length of a body that a header says, or -1. It reads value once: a guest may have made it.
function bodyLength(value) {
  const n = value === undefined ? -1 : +value;
  return primordials.NumberIsInteger(n) && n >= 0 && n <= 2 ** 53 - 1 ? n : -1;
}

internal.node.http = put({ __proto__: null }, {
  bodyLength,
  METHODS, STATUS_CODES, validateHeaderName, validateHeaderValue, isWrongText, own, Sent, Connection,
  notHere: (what, instead) => coded(primordials.Error, "ERR_METHOD_NOT_IMPLEMENTED", `node:http has no ${what} in a worker: ${instead}`),
});
