// fetch/response.js is Response of the Fetch standard. A Response of a string keeps the string. Its headers are one
// of a few fixed lists until a handler reads them or sets its own.

"use strict";

const { JSONStringify, RangeError, StringPrototypeCharCodeAt, TypeError, sealedProto } = primordials;
const {
  TOKEN, cloneBody, defineBody, defineInterface, extractBody, illegalInvocation, isBodyUnusable, isBodyUsed, isObject,
  listFrom, requireArguments, toByteString, toDictionary, toUSVString, toUnsignedShort,
} = internal;

const NO_HEADERS = [];
const TEXT_HEADERS = ["content-type", "text/plain;charset=UTF-8"];
const JSON_HEADERS = ["content-type", "application/json"];

class ResponseState {
  isResponse = true;
  type = "default";
  status;
  statusText = "";
  url = "";
  redirected = false;
  fixed; // flat list until headers exist
  headers = null;
  immutable = false;
  source;
  stream = null;
  used = false;
  shared = false;
  webSocket = null; // the client's end of a WebSocketPair
  cf = undefined; // an object of the handler's, as Cloudflare's runtime has it; nothing here reads it
  constructor(status, fixed, source) {
    this.status = status;
    this.fixed = fixed;
    this.source = source;
  }
}
sealedProto(ResponseState);

let stateOf;
let peek;

class Response {
  #state;
  constructor(body = null, init = undefined) {
    if (body === TOKEN) {
      this.#state = init;
      return;
    }
    if (init === undefined && typeof body === "string") {
      this.#state = new ResponseState(200, TEXT_HEADERS, body);
      return;
    }
    const extracted = body === null || body === undefined ? null : extractBody(body);
    const dictionary = readInit(init, "new Response");
    this.#state = new ResponseState(200, NO_HEADERS, null);
    initialize(this.#state, dictionary, extracted);
  }
  static {
    stateOf = (value) => {
      if (!isObject(value) || !(#state in value)) throw illegalInvocation("Response");
      return value.#state;
    };
    peek = (value) => (typeof value === "object" && value !== null && #state in value ? value.#state : undefined);
  }
  static error() {
    const s = new ResponseState(0, NO_HEADERS, null);
    s.type = "error";
    s.immutable = true;
    return new Response(TOKEN, s);
  }
  static redirect(url, status = 302) {
    requireArguments(arguments.length, 1, "Response.redirect");
    const text = toUSVString(url);
    const code = toUnsignedShort(status);
    const record = internal.parseURL(text, null);
    if (record === null) throw new TypeError(`Response.redirect: ${internal.inspectBrief(text)} is not an absolute URL`);
    if (code !== 301 && code !== 302 && code !== 303 && code !== 307 && code !== 308) {
      throw new RangeError(`Response.redirect: ${code} is not a redirect status`);
    }
    const s = new ResponseState(code, ["location", internal.serializeURL(record)], null);
    s.immutable = true;
    return new Response(TOKEN, s);
  }
  static json(data, init = undefined) {
    requireArguments(arguments.length, 1, "Response.json");
    if (init === undefined) return new Response(TOKEN, new ResponseState(200, JSON_HEADERS, jsonText(data)));
    const dictionary = readInit(init, "Response.json");
    const s = new ResponseState(200, NO_HEADERS, null);
    initialize(s, dictionary, { __proto__: null, source: jsonText(data), stream: null, type: "application/json" });
    return new Response(TOKEN, s);
  }
  get type() { return stateOf(this).type; }
  get url() { return stateOf(this).url; }
  get redirected() { return stateOf(this).redirected; }
  get status() { return stateOf(this).status; }
  get ok() {
    const { status } = stateOf(this);
    return status >= 200 && status <= 299;
  }
  get statusText() { return stateOf(this).statusText; }
  get headers() { return responseHeaders(stateOf(this)); }
  get webSocket() { return stateOf(this).webSocket; }
  get cf() { return stateOf(this).cf; }
  clone() { return cloneResponse(stateOf(this)); }
}
defineBody(Response, (value) => stateOf(value));
defineInterface(Response, "Response");

function cloneResponse(s) {
  if (s.webSocket !== null) throw new TypeError("Response.clone: a Response with a webSocket cannot be cloned");
  if (isBodyUnusable(s)) throw new TypeError("Response.clone: the body has been read already, or is locked by a reader");
  const copy = new ResponseState(s.status, NO_HEADERS, null);
  copy.type = s.type;
  copy.statusText = s.statusText;
  copy.url = s.url;
  copy.redirected = s.redirected;
  copy.cf = s.cf;
  const list = listFrom(flatHeaders(s));
  list.coded = s.headers !== null && internal.headersList(s.headers).coded;
  copy.headers = internal.newHeaders(list, s.immutable);
  copy.immutable = s.immutable;
  cloneBody(s, copy);
  return new Response(TOKEN, copy);
}

function jsonText(data) {
  const text = JSONStringify(data);
  if (text === undefined) throw new TypeError("Response.json: the data has no JSON form");
  return text;
}

function readInit(value, what) {
  const init = toDictionary(value, `${what}: the init`);
  if (init === undefined) return undefined;
  const { cf, headers } = init;
  const list = headers === undefined ? null : internal.toHeaderList(headers);
  const givenStatus = init.status;
  const status = givenStatus === undefined ? 200 : toUnsignedShort(givenStatus);
  const givenText = init.statusText;
  const statusText = givenText === undefined ? "" : toByteString(givenText, "statusText");
  const { webSocket } = init;
  if (webSocket !== undefined && webSocket !== null && !internal.isWebSocket(webSocket)) {
    throw new TypeError(`${what}: the webSocket is not a WebSocket`);
  }
  return {
    __proto__: null, list, status, statusText, webSocket: webSocket ?? null, cf: cf === undefined ? undefined : internal.toCf(cf),
  };
}

function isReasonPhrase(text) {
  for (let i = 0; i < text.length; i++) {
    const c = StringPrototypeCharCodeAt(text, i);
    if (!(c === 9 || c === 32 || (c >= 33 && c <= 126) || (c >= 128 && c <= 255))) return false;
  }
  return true;
}

function isNullBodyStatus(status) {
  return status === 101 || status === 103 || status === 204 || status === 205 || status === 304;
}

// initialize is the Fetch standard's "initialize a response".
function initialize(s, init, extracted) {
  if (init !== undefined) {
    if (init.webSocket !== null && init.status !== 101) throw new RangeError(`a Response with a webSocket has the status 101, not ${init.status}`);
    if (init.webSocket === null && (init.status < 200 || init.status > 599)) throw new RangeError(`the status ${init.status} is not within 200 to 599`);
    if (!isReasonPhrase(init.statusText)) throw new TypeError("the statusText is not a reason phrase");
    s.status = init.status;
    s.statusText = init.statusText;
    s.webSocket = init.webSocket;
    s.cf = init.cf;
    if (init.list !== null) s.headers = internal.newHeaders(internal.checkHeaders(init.list), false);
  }
  if (extracted === null) return;
  if (isNullBodyStatus(s.status)) {
    if (extracted.stream === null && internal.isEmptySource(extracted.source)) return; // as at Cloudflare
    throw new TypeError(`a response with status ${s.status} cannot have a body`);
  }
  s.source = extracted.source;
  s.stream = extracted.stream;
  if (extracted.type === null) return;
  if (s.headers === null) {
    s.fixed = ["content-type", extracted.type];
    return;
  }
  const list = internal.headersList(s.headers);
  if (!internal.listHas(list, "content-type")) internal.listAppend(list, "content-type", extracted.type);
}

function responseHeaders(s) {
  return (s.headers ??= internal.newHeaders(listFrom(s.fixed), s.immutable));
}

// flatHeaders returns the headers as a flat list, unsorted, for the reply.
function flatHeaders(s) {
  return s.headers === null ? s.fixed : internal.headersList(s.headers).flat;
}

// decodedHeaders is flatHeaders for a body that JavaScript has.
function decodedHeaders(s) {
  return s.headers === null ? s.fixed : internal.decodedHeaders(internal.headersList(s.headers));
}

// contentTypeOf returns the content-type of the state of a Request or Response, or null.
internal.contentTypeOf = (s) => {
  const headers = s.isResponse ? responseHeaders(s) : internal.requestHeaders(s);
  return internal.listGet(internal.headersList(headers), "content-type");
};

internal.addInspector((value) => peek(value) !== undefined, (value) => {
  const s = peek(value);
  return ["status", s.status, "statusText", s.statusText, "headers", responseHeaders(s), "bodyUsed", isBodyUsed(s)];
});

internal.newResponse = (state) => new Response(TOKEN, state);
internal.peekResponse = (value) => peek(value);
internal.cloneResponse = (response) => cloneResponse(stateOf(response));
primordials.ObjectAssign(internal, { ResponseState, decodedResponseHeaders: decodedHeaders, flatResponseHeaders: flatHeaders, isNullBodyStatus, responseState: stateOf });
