// fetch/request.js is Request of the Fetch standard. The Request of an event is made from the data of Go. It makes
// its Headers, URL, signal and body stream only when a handler reads them.

"use strict";

const { ObjectFreeze, StringPrototypeStartsWith, StringPrototypeToUpperCase, TypeError, sealedProto } = primordials;
const {
  TOKEN, cloneBody, defineBody, defineInterface, dependentSignal, extractBody, illegalInvocation, isBodyUnusable,
  isBodyUsed, isObject, listFrom, requireArguments, toBody, toByteString, toDOMString, toDictionary, toEnum,
  toUSVString,
} = internal;

// RequestExtras holds the rare fields separately, so that the common Request is small.
class RequestExtras {
  mode = "cors";
  credentials = "same-origin";
  cache = "default";
  redirect = "follow";
  referrer = "about:client";
  referrerPolicy = "";
  integrity = "";
  keepalive = false;
}
sealedProto(RequestExtras);
const defaults = new RequestExtras();

// incoming are those of an event's request. Its redirects are for the client that sent it, as at Cloudflare.
const incoming = new RequestExtras();
incoming.redirect = "manual";
const NO_CF = ObjectFreeze({}); // the cf of each request that comes in

class RequestState {
  isResponse = false;
  method;
  url; // the original URL, until urlReady
  urlReady;
  rawHeaders; // the flat list from Go, until headers exist
  headers = null;
  immutable;
  source;
  stream = null;
  used = false;
  shared = false;
  signal = null;
  cf = undefined; // an object, as Cloudflare's runtime has it; nothing here reads it
  blob = null; // the Blob of the URL, of the scheme blob, when the request was made
  extras = defaults;
  constructor(method, url, urlReady, rawHeaders, immutable, source) {
    this.method = method;
    this.url = url;
    this.urlReady = urlReady;
    this.rawHeaders = rawHeaders;
    this.immutable = immutable;
    this.source = source;
  }
}
sealedProto(RequestState);

const modes = ["navigate", "same-origin", "no-cors", "cors"];
const credentialModes = ["omit", "same-origin", "include"];
const caches = ["default", "no-store", "reload", "no-cache", "force-cache", "only-if-cached"];
const redirects = ["follow", "error", "manual"];
const priorities = ["high", "low", "auto"];
const policies = ["", "no-referrer", "no-referrer-when-downgrade", "same-origin", "origin", "strict-origin",
  "origin-when-cross-origin", "strict-origin-when-cross-origin", "unsafe-url"];

let stateOf;

class Request {
  #state;
  constructor(input, init = undefined) {
    if (input === TOKEN) {
      this.#state = init;
      return;
    }
    requireArguments(arguments.length, 1, "new Request");
    this.#state = construct(input, toDictionary(init, "new Request: the init"));
  }
  static {
    stateOf = (value) => {
      if (!isObject(value) || !(#state in value)) throw illegalInvocation("Request");
      return value.#state;
    };
    internal.isRequest = (value) => isObject(value) && #state in value;
  }
  get method() { return stateOf(this).method; }
  get url() { return requestURL(stateOf(this)); }
  get headers() { return requestHeaders(stateOf(this)); }
  get destination() { stateOf(this); return ""; }
  get referrer() { return stateOf(this).extras.referrer; }
  get referrerPolicy() { return stateOf(this).extras.referrerPolicy; }
  get mode() { return stateOf(this).extras.mode; }
  get credentials() { return stateOf(this).extras.credentials; }
  get cache() { return stateOf(this).extras.cache; }
  get redirect() { return stateOf(this).extras.redirect; }
  get integrity() { return stateOf(this).extras.integrity; }
  get keepalive() { return stateOf(this).extras.keepalive; }
  get isReloadNavigation() { stateOf(this); return false; }
  get isHistoryNavigation() { stateOf(this); return false; }
  get signal() { return requestSignal(stateOf(this)); }
  get duplex() { stateOf(this); return "half"; }
  get cf() { return stateOf(this).cf; }
  clone() {
    const s = stateOf(this);
    if (isBodyUnusable(s)) throw new TypeError("Request.clone: the body has been read already, or is locked by a reader");
    const copy = copyState(s);
    cloneBody(s, copy);
    copy.signal = dependentSignal([requestSignal(s)]);
    return new Request(TOKEN, copy);
  }
}
defineBody(Request, (value) => stateOf(value));
defineInterface(Request, "Request");

function requestURL(s) {
  if (!s.urlReady) {
    s.url = internal.normalizeURL(s.url);
    s.urlReady = true;
  }
  return s.url;
}

function requestHeaders(s) {
  if (s.headers === null) {
    s.headers = internal.newHeaders(listFrom(s.rawHeaders), s.immutable);
    s.rawHeaders = null;
  }
  return s.headers;
}

function requestSignal(s) {
  return (s.signal ??= internal.newSignal());
}

// copyState copies all but the body and the signal. The headers become mutable, like the "request" guard of the
// standard.
function copyState(s) {
  const copy = new RequestState(s.method, requestURL(s), true, null, false, null);
  copy.blob = s.blob;
  copy.cf = s.cf;
  copy.headers = internal.newHeaders(internal.copyList(internal.headersList(requestHeaders(s))), s.immutable);
  if (s.extras !== defaults) {
    copy.extras = new RequestExtras();
    copyExtras(s.extras, copy.extras);
  }
  return copy;
}

function copyExtras(from, to) {
  to.mode = from.mode;
  to.credentials = from.credentials;
  to.cache = from.cache;
  to.redirect = from.redirect;
  to.referrer = from.referrer;
  to.referrerPolicy = from.referrerPolicy;
  to.integrity = from.integrity;
  to.keepalive = from.keepalive;
}

class RequestInit {
  body = undefined;
  cache = undefined;
  cf = undefined;
  credentials = undefined;
  duplex = undefined;
  headers = undefined;
  integrity = undefined;
  keepalive = undefined;
  method = undefined;
  mode = undefined;
  redirect = undefined;
  referrer = undefined;
  referrerPolicy = undefined;
  signal = undefined;
  other = false; // a member was set that has no effect here
}
sealedProto(RequestInit);

// readInit reads a RequestInit dictionary once, in the order of its members' names.
function readInit(init) {
  const out = new RequestInit();
  if (init === undefined) return out;
  out.body = toBody(init.body);
  out.cache = optional(init.cache, (v) => toEnum(v, caches, "cache"));
  out.cf = optional(init.cf, toCf);
  out.credentials = optional(init.credentials, (v) => toEnum(v, credentialModes, "credentials"));
  out.duplex = optional(init.duplex, (v) => toEnum(v, ["half"], "duplex"));
  out.headers = optional(init.headers, internal.toHeaderList);
  out.integrity = optional(init.integrity, toDOMString);
  out.keepalive = optional(init.keepalive, (v) => !!v);
  out.method = optional(init.method, (v) => toByteString(v, "method"));
  out.mode = optional(init.mode, (v) => toEnum(v, modes, "mode"));
  const priority = optional(init.priority, (v) => toEnum(v, priorities, "priority"));
  out.redirect = optional(init.redirect, (v) => toEnum(v, redirects, "redirect"));
  out.referrer = optional(init.referrer, toUSVString);
  out.referrerPolicy = optional(init.referrerPolicy, (v) => toEnum(v, policies, "referrerPolicy"));
  const { signal, window } = init;
  if (signal !== undefined && signal !== null && !internal.isAbortSignal(signal)) {
    throw new TypeError("new Request: signal is not an AbortSignal");
  }
  if (window !== undefined && window !== null) throw new TypeError("new Request: window can only be null");
  out.signal = signal;
  out.other = priority !== undefined || window !== undefined;
  return out;
}

function toCf(value) {
  if (!isObject(value)) throw new TypeError("cf is not an object");
  return value;
}

function optional(value, convert) {
  return value === undefined ? undefined : convert(value);
}

// construct is the Request constructor of the Fetch standard, without a client. So relative URLs have no base.
function construct(input, rawInit) {
  const from = internal.isRequest(input) ? stateOf(input) : null;
  const url = from === null ? toUSVString(input) : "";
  const init = readInit(rawInit);
  const s = from === null ? new RequestState("GET", parseRequestURL(url), true, null, false, null) : copyState(from);
  s.immutable = false;
  if (init.cf !== undefined) s.cf = init.cf;
  if (from === null && StringPrototypeStartsWith(s.url, "blob:")) s.blob = internal.blobOf(internal.withoutFragment(s.url));
  if (from === null) s.headers = internal.newHeaders(listFrom(null), false);
  else s.headers = internal.newHeaders(internal.headersList(s.headers), false);
  applyExtras(s, init);
  if (init.method !== undefined) s.method = checkMethod(init.method);
  if (s.extras.mode === "no-cors" && s.method !== "GET" && s.method !== "HEAD" && s.method !== "POST") {
    throw new TypeError(`new Request: mode no-cors does not allow method ${s.method}`);
  }
  s.signal = requestSignalFrom(from, init);
  if (init.headers !== undefined) replaceHeaders(s, init.headers);
  applyBody(s, from, init);
  return s;
}

function parseRequestURL(text) {
  const record = internal.parseURL(text, null);
  if (record === null) throw new TypeError(`new Request: ${internal.inspectBrief(text)} is not an absolute URL`);
  if (record.username !== "" || record.password !== "") throw new TypeError("new Request: the URL has credentials");
  return internal.serializeURL(record);
}

function applyExtras(s, init) {
  const changed = init.mode ?? init.credentials ?? init.cache ?? init.redirect ?? init.referrer ?? init.referrerPolicy ??
    init.integrity ?? init.keepalive;
  if (changed === undefined && (s.extras === defaults || isEmpty(init))) return;
  const extras = new RequestExtras();
  copyExtras(s.extras, extras);
  s.extras = extras;
  extras.referrer = defaults.referrer; // any init resets these two
  extras.referrerPolicy = defaults.referrerPolicy;
  if (init.mode === "navigate") throw new TypeError("new Request: mode cannot be navigate");
  if (init.mode !== undefined) extras.mode = init.mode;
  if (init.credentials !== undefined) extras.credentials = init.credentials;
  if (init.cache !== undefined) extras.cache = init.cache;
  if (extras.cache === "only-if-cached" && extras.mode !== "same-origin") {
    throw new TypeError("new Request: cache only-if-cached needs mode same-origin");
  }
  if (init.redirect !== undefined) extras.redirect = init.redirect;
  if (init.referrer !== undefined) extras.referrer = referrer(init.referrer);
  if (init.referrerPolicy !== undefined) extras.referrerPolicy = init.referrerPolicy;
  if (init.integrity !== undefined) extras.integrity = init.integrity;
  if (init.keepalive !== undefined) extras.keepalive = init.keepalive;
}

// isEmpty reports whether an init without extras has no other member either.
function isEmpty(init) {
  return !init.other && init.cf === undefined &&
    (init.body ?? init.duplex ?? init.headers ?? init.method ?? init.signal) === undefined &&
    init.body !== null && init.signal !== null;
}

function referrer(text) {
  if (text === "") return "";
  const record = internal.parseURL(text, null);
  if (record === null) throw new TypeError("new Request: the referrer is not an absolute URL");
  const url = internal.serializeURL(record);
  return url === "about:client" ? "about:client" : url;
}

const normalized = ["DELETE", "GET", "HEAD", "OPTIONS", "POST", "PUT"];

function checkMethod(method) {
  if (!internal.isToken(method)) throw new TypeError(`invalid method ${internal.inspectBrief(method)}`);
  const upper = StringPrototypeToUpperCase(method);
  if (upper === "CONNECT" || upper === "TRACE" || upper === "TRACK") throw new TypeError(`method ${method} is not allowed`);
  for (let i = 0; i < normalized.length; i++) {
    if (normalized[i] === upper) return upper;
  }
  return method;
}

function requestSignalFrom(from, init) {
  const signal = init.signal !== undefined ? init.signal : from === null ? null : requestSignal(from);
  return signal === null ? null : dependentSignal([signal]);
}

function replaceHeaders(s, headers) {
  s.headers = internal.newHeaders(internal.checkHeaders(headers), false);
}

function applyBody(s, from, init) {
  const inputHasBody = from !== null && (from.source !== null || from.stream !== null);
  const given = init.body !== undefined && init.body !== null;
  if ((given || inputHasBody) && (s.method === "GET" || s.method === "HEAD")) {
    throw new TypeError(`new Request: a ${s.method} request cannot have a body`);
  }
  if (given) {
    if (s.extras.keepalive && internal.isReadableStream(init.body)) {
      throw new TypeError("new Request: a stream as body cannot be keepalive");
    }
    const extracted = extractBody(init.body);
    s.source = extracted.source;
    s.stream = extracted.stream;
    if (extracted.stream !== null && s.extras.mode === "no-cors") throw new TypeError("new Request: mode no-cors does not allow a stream as body");
    const list = internal.headersList(s.headers);
    if (extracted.type !== null && !internal.listHas(list, "content-type")) {
      internal.listAppend(list, "content-type", extracted.type);
    }
    return;
  }
  if (!inputHasBody) return;
  if (isBodyUnusable(from)) throw new TypeError("new Request: the body has been read already, or is locked by a reader");
  moveBody(from, s);
}

// moveBody passes the body of the input on. After that, the input counts as read.
function moveBody(from, to) {
  if (from.stream !== null) {
    to.stream = internal.proxyStream(from.stream);
    return;
  }
  to.source = from.source;
  to.shared = from.shared;
  from.used = true;
}

internal.addInspector(internal.isRequest, (value) => {
  const s = stateOf(value);
  return ["method", s.method, "url", requestURL(s), "headers", requestHeaders(s), "bodyUsed", isBodyUsed(s)];
});

// newEventRequest makes the Request of an event. Go has already checked that the URL is absolute.
internal.newEventRequest = (method, url, headers, body) => {
  const s = new RequestState(method, url, false, headers, true, body);
  s.extras = incoming;
  s.cf = NO_CF;
  return new Request(TOKEN, s);
};
// newNodeRequest makes the Request of a client of node:http, from what it has checked. Its redirects are the client's.
internal.newNodeRequest = (method, url, list, source, stream) => {
  const s = new RequestState(method, url, true, null, false, source);
  s.headers = internal.newHeaders(list, false);
  s.stream = stream;
  s.signal = internal.newSignal();
  s.extras = incoming;
  return new Request(TOKEN, s);
};
// setCf says what another worker sent with the request.
internal.setCf = (request, cf) => { stateOf(request).cf = cf; };

internal.bodyMimeType = (s) => {
  const type = internal.contentTypeOf(s);
  const mime = type === null ? null : internal.extractMimeType(type);
  return mime === null ? "" : internal.serializeMimeType(mime);
};
primordials.ObjectAssign(internal, { Request, requestHeaders, requestSignal, requestState: stateOf, requestURL, toCf });
