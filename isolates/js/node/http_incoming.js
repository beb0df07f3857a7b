// node/http_incoming.js is IncomingMessage of node:http: a request to a server, or the response that a client gets. Its
// body comes from that of a Request or Response.

"use strict";

const { ObjectPrototypeHasOwnProperty, StringPrototypeToLowerCase, TypedArrayPrototypeGetTag, sealedProto } = primordials;
const { appendArray, liveBytes, markHandled } = internal;
const { builtin, callLater, coded, http } = internal.node;
const { Readable } = builtin("stream");
const { over } = builtin("buffer") && internal.node.bufferParts;
const { own } = http;

// Of these the first one counts. Of others the values are joined.
const single = {
  __proto__: null, age: true, authorization: true, "content-length": true, "content-type": true, etag: true, expires: true, from: true,
  host: true, "if-modified-since": true, "if-unmodified-since": true, "last-modified": true, location: true, "max-forwards": true,
  "proxy-authorization": true, referer: true, "retry-after": true, server: true, "user-agent": true,
};

// Body reads a stream of bytes for a message, a chunk when the message wants one.
class Body {
  reader;
  request;
  busy = false;
  again = false;
  ended = false;
  constructor(stream, take, end, fail) {
    const { ReadRequest, acquireReader } = internal.streams;
    this.reader = acquireReader(internal.readableState(stream));
    this.request = new ReadRequest(take, () => {
      this.ended = true;
      end();
    }, (error) => {
      this.ended = true;
      fail(error);
    });
  }
  more() {
    if (!this.ended) internal.readOn(this);
  }
  cancel(reason) {
    if (this.ended) return;
    this.ended = true;
    markHandled(internal.streams.streamCancel(this.reader.stream, reason));
  }
}
sealedProto(Body);

// headersOf makes the object of headers, and that of their values.
function headersOf(flat, distinct) {
  const out = {};
  for (let i = 0; i < flat.length; i += 2) {
    const name = StringPrototypeToLowerCase(flat[i]);
    const value = flat[i + 1];
    const had = ObjectPrototypeHasOwnProperty(out, name);
    if (distinct || name === "set-cookie") {
      if (!had) own(out, name, []);
      appendArray(out[name], value);
    } else if (!had) own(out, name, value);
    else if (single[name] !== true) own(out, name, `${out[name]}${name === "cookie" ? "; " : ", "}${value}`);
  }
  return out;
}

class IncomingMessage extends Readable {
  socket;
  httpVersionMajor = 1;
  httpVersionMinor = 1;
  httpVersion = "1.1";
  complete = false;
  rawHeaders = [];
  rawTrailers = [];
  joinDuplicateHeaders = undefined;
  aborted = false;
  upgrade = false;
  url = "";
  method = null;
  statusCode = null;
  statusMessage = null;
  client;
  #headers = null;
  #distinct = null;
  #trailers = {};
  #body = null;
  #bytes = null; // the whole body, until it is read
  #left = null; // called when the message is destroyed before its end
  constructor(socket = undefined) {
    super({ highWaterMark: socket?.readableHighWaterMark });
    this.socket = socket;
    this.client = socket;
  }
  static {
    // fill gives a message its headers, as a flat list, and its body, of the state of a Request or Response, or null.
    http.fill = (message, flat, state, left) => {
      for (let i = 0; i < flat.length; i++) appendArray(message.rawHeaders, flat[i]);
      message.#left = left;
      if (state === null || (state.stream === null && state.source === null)) return;
      if (state.stream === null && !state.used) {
        message.#bytes = internal.sourceBytes(state.source, state.shared);
        state.used = true;
        return;
      }
      message.#body = new Body(internal.bodyStream(state), (chunk) => {
        if (TypedArrayPrototypeGetTag(chunk) === "Uint8Array") message.push(over(liveBytes(chunk)));
        else message.destroy(coded(primordials.Error, "ERR_INVALID_ARG_TYPE", "a chunk of the body is not a Uint8Array"));
      }, () => { message.#end(); }, (error) => { message.#broke(error); });
    };
  }
  get headers() { return (this.#headers ??= headersOf(this.rawHeaders, false)); }
  set headers(value) { this.#headers = value; }
  get headersDistinct() { return (this.#distinct ??= headersOf(this.rawHeaders, true)); }
  set headersDistinct(value) { this.#distinct = value; }
  get trailers() { return this.#trailers; }
  set trailers(value) { this.#trailers = value; }
  get trailersDistinct() { return {}; }
  get connection() { return this.socket; }
  set connection(value) { this.socket = value; }
  // Nothing but the limits of the event bounds the time of a message.
  setTimeout(delay, callback = undefined) {
    if (typeof callback === "function") this.on("timeout", callback);
    return this;
  }
  #end() {
    this.complete = true;
    this.push(null);
  }
  #broke(error) {
    if (this.destroyed) return;
    this.aborted = true;
    this.emit("aborted");
    const failed = coded(primordials.Error, internal.failureCode(error) || "ECONNRESET", "aborted");
    failed.cause = error;
    this.destroy(failed);
  }
  _read() {
    const bytes = this.#bytes;
    this.#bytes = null;
    if (this.#body !== null) this.#body.more();
    else {
      if (bytes !== null && primordials.lengthOf(bytes) > 0) this.push(over(bytes));
      this.#end();
    }
  }
  _destroy(error, callback) {
    const left = this.#left;
    this.#left = null;
    this.#bytes = null;
    if (!this.complete && this.#body !== null) {
      this.aborted = true;
      this.#body.cancel(error ?? undefined);
    }
    if (left !== null) left(this.complete, error);
    callLater(callback, error);
  }
  _dump() { this.resume(); }
}

http.IncomingMessage = IncomingMessage;
