// node/http_outgoing.js is OutgoingMessage of node:http: a request of a client, or the response of a server. What is
// written before the code that runs has ended becomes a whole body, if it is all. More becomes a stream.

"use strict";

const {
  ArrayIsArray, Error, List, MapPrototypeGetSize, ObjectEntries, TypeError, lengthOf,
} = primordials;
const { appendArray, concatBytes, copyBytes, liveBytes } = internal;
const { builtin, callLater, checks, coded, http, wrongType } = internal.node;
const { Writable } = builtin("stream");
const { Buffer } = builtin("buffer");
const { Sent, own, validateHeaderName, validateHeaderValue } = http;

const GATHERED = 16384; // bytes that wait for the end of a body

const tooLate = (what) => coded(Error, "ERR_HTTP_HEADERS_SENT", `Cannot ${what} headers after they are sent to the client`);

function bytesOf(chunk, encoding) {
  return typeof chunk === "string" ? liveBytes(Buffer.from(chunk, encoding)) : copyBytes(chunk);
}

function isMap(value) {
  try {
    return MapPrototypeGetSize(value) >= 0;
  } catch {
    return false;
  }
}

class OutgoingMessage extends Writable {
  sendDate = true;
  shouldKeepAlive = true;
  chunkedEncoding = false;
  useChunkedEncodingByDefault = true;
  strictContentLength = false;
  maxRequestsOnConnectionReached = false;
  socket = null;
  #sent = new Sent();
  #headersSent = false;
  #bodiless = false; // no body follows the headers
  #start = null; // (bytes, stream): has the headers sent. One of them is null, or both
  #left = null; // (error): the message is destroyed
  #gathered = new List();
  #gatheredBytes = 0;
  #soon = false;
  #ending = false; // what is written now is the last of it
  #started = false;
  #feed = null;
  #wanted = false; // the reader of the stream waits for bytes
  #waiting = null; // {bytes, done} of a write that waits for the reader
  constructor(options = undefined) {
    super({ highWaterMark: options?.highWaterMark, decodeStrings: false, autoDestroy: options?.autoDestroy !== false });
  }
  static {
    http.out = {
      __proto__: null,
      // setUp says how a message is sent, and what is called when it is destroyed.
      setUp(message, start, left) {
        message.#start = start;
        message.#left = left;
      },
      seal(message, bodiless) {
        message.#headersSent = true;
        message.#bodiless = bodiless;
      },
      list: (message) => message.#sent.list(),
      // broken ends the stream of a message.
      broken(message, error) {
        if (message.#feed !== null) message.#feed.error(error);
      },
      started: (message) => message.#started,
      entries: (message) => message.#sent,
    };
  }
  // ---- headers ----
  setHeader(name, value) {
    if (this.#headersSent) throw tooLate("set");
    validateHeaderName(name);
    this.#checkValues(name, value);
    this.#sent.set(name, value);
    return this;
  }
  #checkValues(name, value) {
    if (!ArrayIsArray(value)) validateHeaderValue(name, value);
    else for (let i = 0; i < value.length; i++) validateHeaderValue(name, value[i]);
  }
  setHeaders(headers) {
    if (this.#headersSent) throw tooLate("set");
    if (!internal.isHeaders(headers) && !isMap(headers)) {
      throw wrongType("headers", "an instance of Headers or Map", headers);
    }
    const cookies = [];
    for (const [name, value] of headers) {
      if (name === "set-cookie") appendArray(cookies, value);
      else this.setHeader(name, value);
    }
    if (cookies.length > 0) this.setHeader("set-cookie", cookies);
    return this;
  }
  appendHeader(name, value) {
    if (this.#headersSent) throw tooLate("append");
    validateHeaderName(name);
    this.#checkValues(name, value);
    const before = this.#sent.get(name);
    if (before === undefined) this.#sent.set(name, value);
    else {
      const all = ArrayIsArray(before) ? before : [before];
      if (ArrayIsArray(value)) for (let i = 0, n = value.length; i < n; i++) appendArray(all, value[i]);
      else appendArray(all, value);
      if (all !== before) this.#sent.set(name, all);
    }
    return this;
  }
  getHeader(name) {
    checks.string(name, "name");
    return this.#sent.get(name);
  }
  getHeaderNames() {
    const out = [];
    this.#sent.each((lower) => { appendArray(out, lower); });
    return out;
  }
  getRawHeaderNames() {
    const out = [];
    this.#sent.each((_, name) => { appendArray(out, name); });
    return out;
  }
  getHeaders() {
    const out = { __proto__: null };
    this.#sent.each((lower, _, value) => { own(out, lower, value); });
    return out;
  }
  hasHeader(name) {
    checks.string(name, "name");
    return this.#sent.has(name);
  }
  removeHeader(name) {
    checks.string(name, "name");
    if (this.#headersSent) throw tooLate("remove");
    this.#sent.delete(name);
  }
  get headersSent() { return this.#headersSent; }
  get _header() { return this.#headersSent ? "" : null; }
  get finished() { return this.writableEnded; }
  get connection() { return this.socket; }
  set connection(value) { this.socket = value; }
  addTrailers() {}
  _implicitHeader() { this.destroy(coded(Error, "ERR_METHOD_NOT_IMPLEMENTED", "The _implicitHeader() method is not implemented")); }
  flushHeaders() {
    if (!this.#headersSent) this._implicitHeader();
    if (!this.#bodiless) this.#stream();
  }
  setTimeout(delay, callback = undefined) {
    if (typeof callback === "function") this.on("timeout", callback);
    return this;
  }
  pipe() {
    this.destroy(coded(Error, "ERR_STREAM_CANNOT_PIPE", "Cannot pipe, not readable"));
  }
  // ---- the body ----
  write(chunk, encoding = undefined, callback = undefined) {
    if (chunk !== null && typeof chunk !== "string" && !internal.isView(chunk)) {
      throw wrongType("chunk", "of type string or an instance of Buffer or Uint8Array", chunk);
    }
    if (!this.#headersSent && chunk !== null && !this.destroyed) this._implicitHeader();
    return super.write(chunk, encoding, callback);
  }
  end(chunk = undefined, encoding = undefined, callback = undefined) {
    if (typeof chunk === "function") {
      callback = chunk;
      chunk = undefined;
    } else if (typeof encoding === "function") {
      callback = encoding;
      encoding = undefined;
    }
    if (chunk !== undefined && chunk !== null && typeof chunk !== "string" && !internal.isView(chunk)) {
      throw wrongType("chunk", "of type string or an instance of Buffer or Uint8Array", chunk);
    }
    if (!this.#headersSent && !this.destroyed) this._implicitHeader();
    this.#ending = true;
    return super.end(chunk, encoding, callback);
  }
  _write(chunk, encoding, callback) {
    if (this.#bodiless) {
      callback();
      return;
    }
    const bytes = bytesOf(chunk, encoding);
    if (this.#started) {
      this.#pass(bytes, callback);
      return;
    }
    this.#gathered[this.#gathered.length] = bytes;
    this.#gatheredBytes += lengthOf(bytes);
    if (this.#gatheredBytes > GATHERED) this.#stream();
    else if (!this.#soon) {
      this.#soon = true;
      callLater(() => { this.#stream(); });
    }
    callback();
  }
  // #stream begins a body whose end has not come.
  #stream() {
    if (this.#started || this.destroyed || this.#start === null || this.#ending) return;
    this.#started = true;
    this.#feed = internal.newFeed((reason) => { this.#cancelled(reason); }, () => {
      this.#wanted = true;
      this.#give();
    });
    const bytes = this.#takeGathered();
    if (lengthOf(bytes) > 0) this.#waiting = { __proto__: null, bytes, done: null };
    this.#begin(null, this.#feed.stream);
  }
  // #begin has the headers sent. They may turn out to be none: code can change what it gave as their values.
  #begin(bytes, stream) {
    try {
      this.#start(bytes, stream);
    } catch (error) {
      this.destroy(error);
    }
  }
  #takeGathered() {
    const bytes = concatBytes(this.#gathered);
    this.#gathered = new List();
    return bytes;
  }
  #pass(bytes, done) {
    if (this.#waiting !== null) { // what was gathered, whose callbacks were called
      this.#waiting.bytes = concat(this.#waiting.bytes, bytes);
      this.#waiting.done = done;
    } else if (lengthOf(bytes) === 0) done();
    else this.#waiting = { __proto__: null, bytes, done };
    this.#give();
  }
  #give() {
    const waiting = this.#waiting;
    if (!this.#wanted || waiting === null) return;
    this.#wanted = false;
    this.#waiting = null;
    this.#feed.push(waiting.bytes);
    if (waiting.done !== null) waiting.done();
  }
  // #cancelled: nobody reads the body any more.
  #cancelled() {
    const waiting = this.#waiting;
    this.#waiting = null;
    if (waiting !== null && waiting.done !== null) callLater(waiting.done);
    this.destroy();
  }
  _final(callback) {
    if (this.#start === null) {
      callback();
      return;
    }
    if (!this.#started) {
      this.#started = true;
      this.#begin(this.#bodiless ? null : this.#takeGathered(), null);
      callback();
      return;
    }
    if (this.#feed !== null) {
      if (this.#waiting !== null) {
        const { bytes } = this.#waiting;
        this.#waiting = null;
        this.#feed.push(bytes);
      }
      this.#feed.close();
    }
    callback();
  }
  _destroy(error, callback) {
    const left = this.#left;
    this.#left = null;
    if (this.#feed !== null && !this.writableFinished) {
      this.#feed.error(error ?? coded(Error, "ECONNRESET", "socket hang up"));
    }
    this.#waiting = null;
    this.#gathered = new List();
    if (left !== null) left(error);
    callback(error);
  }
}

function concat(a, b) {
  const list = new List();
  list[0] = a;
  list[1] = b;
  return concatBytes(list);
}

// setAll sets headers that are given as an object, or as a list of names and values.
http.setAll = (message, headers) => {
  if (!ArrayIsArray(headers)) {
    const entries = ObjectEntries(headers);
    for (let i = 0; i < entries.length; i++) message.setHeader(entries[i][0], entries[i][1]);
    return;
  }
  if (ArrayIsArray(headers[0])) {
    for (let i = 0; i < headers.length; i++) message.appendHeader(headers[i][0], headers[i][1]);
    return;
  }
  if (headers.length % 2 !== 0) throw coded(TypeError, "ERR_INVALID_ARG_VALUE", "The argument 'headers' is invalid");
  for (let i = 0; i < headers.length; i += 2) message.removeHeader(headers[i]);
  for (let i = 0; i < headers.length; i += 2) message.appendHeader(headers[i], headers[i + 1]);
};

http.OutgoingMessage = OutgoingMessage;
