// bindings/nats.js is the binding of NATS: publish() and request(). internal/env/bindings has the Go half, which decides about
// subjects and headers.

"use strict";

const { JSONParse, JSONStringify, List, NumberIsFinite, ObjectFreeze, TypeError } = primordials;
const {
  TOKEN, callBinding, copyBytes, defineInterface, illegalConstructor, illegalInvocation, isBufferSource, isObject, listFrom, requireArguments,
  toDictionary, toUSVString, toUnrestrictedDouble, viewBytes,
} = internal;
const { decode, encode } = host;

class NATS {
  #name;
  constructor(token = undefined, name) {
    if (token !== TOKEN) throw illegalConstructor();
    this.#name = name;
  }
  async publish(subject, body = undefined, options = undefined) {
    if (!isObject(this) || !(#name in this)) throw illegalInvocation("NATS");
    requireArguments(arguments.length, 1, "NATS.publish");
    const texts = new List();
    texts[0] = toUSVString(subject);
    const init = toDictionary(options, "NATS.publish: the options");
    texts[1] = init !== undefined && init.jetStream ? "js" : "";
    addHeaders(texts, init);
    return await callBinding("nats", this.#name, "publish", texts, toBytes(body, "NATS.publish"),
      (ack) => ack.length === 0 ? undefined : { stream: ack[0], seq: +ack[1] });
  }
  async request(subject, body = undefined, options = undefined) {
    if (!isObject(this) || !(#name in this)) throw illegalInvocation("NATS");
    requireArguments(arguments.length, 1, "NATS.request");
    const texts = new List();
    texts[0] = toUSVString(subject);
    const init = toDictionary(options, "NATS.request: the options");
    const timeout = init === undefined ? undefined : init.timeoutMs;
    texts[1] = timeout === undefined ? "" : toTimeout(timeout);
    addHeaders(texts, init);
    return await callBinding("nats", this.#name, "request", texts, toBytes(body, "NATS.request"),
      (headers, bytes) => new NATSReply(TOKEN, headers, bytes));
  }
}
defineInterface(NATS, "NATS", true);

// NATSReply is what request() gives. Its body may be read more than once.
class NATSReply {
  #headers;
  #bytes;
  constructor(token = undefined, headers, bytes) {
    if (token !== TOKEN) throw illegalConstructor();
    this.#headers = internal.newHeaders(listFrom(headers), true);
    this.#bytes = bytes;
  }
  get headers() {
    if (!isObject(this) || !(#bytes in this)) throw illegalInvocation("NATSReply");
    return this.#headers;
  }
  text() {
    if (!isObject(this) || !(#bytes in this)) throw illegalInvocation("NATSReply");
    return decode(this.#bytes, false);
  }
  json() {
    if (!isObject(this) || !(#bytes in this)) throw illegalInvocation("NATSReply");
    return JSONParse(decode(this.#bytes, false));
  }
  bytes() {
    if (!isObject(this) || !(#bytes in this)) throw illegalInvocation("NATSReply");
    return copyBytes(this.#bytes);
  }
}
defineInterface(NATSReply, "NATSReply", true);

function addHeaders(texts, init) {
  const given = init === undefined ? undefined : init.headers;
  if (given === undefined) return;
  const headers = internal.flatHeaders(given);
  for (let i = 0; i < headers.length; i++) texts[texts.length] = headers[i];
}

function toTimeout(value) {
  const ms = toUnrestrictedDouble(value);
  if (!NumberIsFinite(ms)) throw new TypeError("NATS.request: timeoutMs is no finite number");
  return `${ms}`;
}

// toBytes returns the bytes of a message: a string as UTF-8, bytes, and of everything else its JSON.
function toBytes(body, method) {
  if (body === undefined || body === null) return "";
  if (typeof body === "string") return encode(body);
  if (isBufferSource(body)) return viewBytes(body);
  const text = JSONStringify(body);
  if (text === undefined) throw new TypeError(`${method}: the body has no JSON form`);
  return encode(text);
}

internal.bindingKinds.nats = (name) => ObjectFreeze(new NATS(TOKEN, name));
