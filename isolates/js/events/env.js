// events/env.js builds env, the frozen object of a worker's bindings: variables as strings or values of JSON, secrets as strings, queues as objects with send().

"use strict";

const {
  Error, JSONParse, JSONStringify, List, Map, MapPrototypeDelete, MapPrototypeGet,
  MapPrototypeSet,
  ObjectDefineProperty, ObjectFreeze, RangeError, TypeError,
} = primordials;
const {
  TOKEN, defineInterface, illegalConstructor, illegalInvocation, isBufferSource, newCapability, requireArguments,
  sendOps, toDictionary, toEnum, toUnrestrictedDouble, viewBytes,
} = internal;
const { encode, send } = host;

let env = ObjectFreeze({});
internal.env = () => env;

const waiting = new Map(); // reqId → {capability, run} of a send() whose task is not stored yet
const contentTypes = ["json", "text", "bytes"];
const mimeTypes = {
  __proto__: null, json: "application/json", text: "text/plain;charset=UTF-8", bytes: "application/octet-stream",
};

const MAX_DELAY = 366 * 24 * 60 * 60; // events.MaxDelay

class Queue {
  #worker;
  constructor(token = undefined, worker) {
    if (token !== TOKEN) throw illegalConstructor();
    this.#worker = worker;
  }
  // send resolves when the task event is stored.
  async send(body, options = undefined) {
    if (!(#worker in this)) throw illegalInvocation("Queue");
    requireArguments(arguments.length, 1, "Queue.send");
    const init = toDictionary(options, "Queue.send: the options");
    const given = init === undefined ? undefined : init.contentType;
    const kind = given !== undefined ? toEnum(given, contentTypes, "Queue.send: contentType") : kindOf(body);
    const delay = init === undefined ? undefined : init.delaySeconds;
    const after = delay === undefined ? undefined : toDelay(delay);
    const givenHeaders = init === undefined ? undefined : init.headers;
    const headers = givenHeaders === undefined ? new List() : internal.flatHeaders(givenHeaders);
    if (after !== undefined) {
      headers[headers.length] = "Deliver-After";
      headers[headers.length] = after;
    }
    const bytes = toBytes(body, kind);
    if (internal.eventIsOver()) throw new Error("Queue.send: the event is over");
    const id = internal.nextRequestId();
    const capability = newCapability();
    const run = internal.acting();
    MapPrototypeSet(waiting, id, { __proto__: null, capability, run });
    internal.speakFor(run);
    send(sendOps.QUEUE, id, this.#worker, bytes, mimeTypes[kind], headers);
    return await capability.promise;
  }
}
defineInterface(Queue, "Queue", true);

// toDelay returns a delay in seconds as a header value. Very small numbers are written with an exponent, and the
// header accepts that.
function toDelay(value) {
  const seconds = toUnrestrictedDouble(value);
  if (!(seconds >= 0 && seconds <= MAX_DELAY)) {
    throw new RangeError(`Queue.send: delaySeconds is ${seconds}: it is 0 to ${MAX_DELAY}`);
  }
  return `${seconds}`;
}

function kindOf(body) {
  if (typeof body === "string") return "text";
  return isBufferSource(body) ? "bytes" : "json";
}

function toBytes(body, kind) {
  if (kind === "bytes") {
    if (typeof body === "string") return encode(body);
    if (!isBufferSource(body)) throw new TypeError("Queue.send: the body is neither a string nor bytes");
    return viewBytes(body);
  }
  if (kind === "text") {
    if (typeof body !== "string") throw new TypeError("Queue.send: the body is not a string");
    return encode(body);
  }
  const text = JSONStringify(body);
  if (text === undefined) throw new TypeError("Queue.send: the body has no JSON form");
  return encode(text);
}

// queued settles one send(). error is null when the event is stored.
internal.queued = (id, error) => {
  const entry = MapPrototypeGet(waiting, id);
  if (entry === undefined) return;
  MapPrototypeDelete(waiting, id);
  const { capability } = entry;
  if (error === null || error === undefined) capability.resolve(undefined);
  else capability.reject(new Error(error));
};

internal.forgetQueues = (run) => internal.forgetIn(waiting, run);

// buildEnv makes env from flat lists name, value and name, worker. texts are variables and secrets. The values of json are
// JSON texts. What they make is not frozen, as at Cloudflare.
internal.buildEnv = (texts, queues, json) => {
  const object = {};
  for (let i = 0; i + 1 < texts.length; i += 2) define(object, texts[i], texts[i + 1]);
  for (let i = 0; i + 1 < queues.length; i += 2) define(object, queues[i], ObjectFreeze(new Queue(TOKEN, queues[i + 1])));
  for (let i = 0; i + 1 < json.length; i += 2) define(object, json[i], JSONParse(json[i + 1]));
  env = ObjectFreeze(object);
};

function define(object, name, value) {
  ObjectDefineProperty(object, name, { __proto__: null, value, writable: true, enumerable: true, configurable: true });
}
