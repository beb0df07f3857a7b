// bindings/queues.js is the binding of another worker's tasks: Cloudflare's Queue, whose class has the name WorkerQueue in workerd.

"use strict";

const {
  Error, JSONStringify, List, Map, MapPrototypeDelete, MapPrototypeGet, MapPrototypeSet, ObjectFreeze, RangeError, TypeError, lengthOf,
} = primordials;
const {
  TOKEN, concatBytes, defineInterface, illegalConstructor, illegalInvocation, isBufferSource, isObject, newCapability, requireArguments,
  sendOps, toDictionary, toEnum, toSequence, toUnrestrictedDouble, viewBytes,
} = internal;
const { encode, send } = host;

const waiting = new Map(); // reqId → {capability, run} of a send whose tasks are not stored yet
const contentTypes = ["json", "text", "bytes"];
const mimeTypes = {
  __proto__: null, json: "application/json", text: "text/plain;charset=UTF-8", bytes: "application/octet-stream",
};

// internal/process/fleet has the same.
const MAX_BATCH = 100; // messages
const MAX_BATCH_BYTES = 256 * 1024; // of their bodies
const MAX_DELAY = 366 * 24 * 60 * 60; // events.MaxDelay

class WorkerQueue {
  #worker;
  constructor(token = undefined, worker) {
    if (token !== TOKEN) throw illegalConstructor();
    this.#worker = worker;
  }
  // send resolves when the task event is stored.
  async send(body, options = undefined) {
    if (!isObject(this) || !(#worker in this)) throw illegalInvocation("Queue");
    requireArguments(arguments.length, 1, "Queue.send");
    const init = toDictionary(options, "Queue.send: the options");
    const texts = new List();
    const bytes = addTask(texts, body, init, undefined, "Queue.send");
    return await sendAll("Queue.send", this.#worker, texts, bytes);
  }
  // sendBatch resolves when all task events are stored.
  async sendBatch(messages, options = undefined) {
    if (!isObject(this) || !(#worker in this)) throw illegalInvocation("Queue");
    requireArguments(arguments.length, 1, "Queue.sendBatch");
    const init = toDictionary(options, "Queue.sendBatch: the options");
    const delay = init === undefined ? undefined : init.delaySeconds;
    const texts = new List();
    const bodies = new List();
    let total = 0;
    toSequence(messages, (message) => {
      if (bodies.length === MAX_BATCH) throw new Error(`Queue.sendBatch: the batch has too many messages: at most ${MAX_BATCH}`);
      if (!isObject(message)) throw new TypeError("Queue.sendBatch: a message is not an object");
      const bytes = addTask(texts, message.body, message, delay, "Queue.sendBatch");
      total += lengthOf(bytes);
      if (total > MAX_BATCH_BYTES) throw new Error(`Queue.sendBatch: the bodies have too many bytes: at most ${MAX_BATCH_BYTES} together`);
      bodies[bodies.length] = bytes;
    }, "Queue.sendBatch: the batch");
    if (bodies.length === 0) throw new TypeError("Queue.sendBatch: the batch has no messages");
    return await sendAll("Queue.sendBatch", this.#worker, texts, concatBytes(bodies));
  }
}
defineInterface(WorkerQueue, "WorkerQueue", true);

// addTask adds a task to texts, as Go reads it: the number of bytes of the body, its type, the number of strings of the
// headers, and these. It returns the bytes of the body.
function addTask(texts, body, init, otherDelay, method) {
  const given = init === undefined ? undefined : init.contentType;
  const kind = given !== undefined ? toKind(given, method) : kindOf(body);
  const delay = (init === undefined ? undefined : init.delaySeconds) ?? otherDelay ?? undefined;
  const after = delay === undefined ? undefined : toDelay(delay, method);
  const givenHeaders = init === undefined ? undefined : init.headers;
  const headers = givenHeaders === undefined ? new List() : internal.flatHeaders(givenHeaders);
  if (after !== undefined) {
    headers[headers.length] = "Deliver-After";
    headers[headers.length] = after;
  }
  const bytes = toBytes(body, kind, method);
  texts[texts.length] = `${lengthOf(bytes)}`;
  texts[texts.length] = mimeTypes[kind];
  texts[texts.length] = `${headers.length}`;
  for (let i = 0; i < headers.length; i++) texts[texts.length] = headers[i];
  return bytes;
}

function sendAll(method, worker, texts, bytes) {
  if (internal.eventIsOver()) throw new Error(`${method}: the event is over`);
  const id = internal.nextRequestId();
  const capability = newCapability();
  const run = internal.acting();
  MapPrototypeSet(waiting, id, { __proto__: null, capability, run });
  internal.speakFor(run);
  send(sendOps.QUEUE, id, worker, texts, bytes);
  return capability.promise;
}

// toKind does not take v8: V8's deserializer is not made for bytes that any publisher may have written.
function toKind(value, method) {
  if (value === "v8") throw new TypeError(`${method}: contentType is "v8", which is not there: a body is "json", "text" or "bytes"`);
  return toEnum(value, contentTypes, `${method}: contentType`);
}

// toDelay returns a delay in seconds as a header value. Very small numbers are written with an exponent, and the
// header accepts that.
function toDelay(value, method) {
  const seconds = toUnrestrictedDouble(value);
  if (!(seconds >= 0 && seconds <= MAX_DELAY)) {
    throw new RangeError(`${method}: delaySeconds is ${seconds}: it is 0 to ${MAX_DELAY}`);
  }
  return `${seconds}`;
}

function kindOf(body) {
  if (typeof body === "string") return "text";
  return isBufferSource(body) ? "bytes" : "json";
}

function toBytes(body, kind, method) {
  if (kind === "bytes") {
    if (typeof body === "string") return encode(body);
    if (!isBufferSource(body)) throw new TypeError(`${method}: the body is neither a string nor bytes`);
    return viewBytes(body);
  }
  if (kind === "text") {
    if (typeof body !== "string") throw new TypeError(`${method}: the body is not a string`);
    return encode(body);
  }
  const text = JSONStringify(body);
  if (text === undefined) throw new TypeError(`${method}: the body has no JSON form`);
  return encode(text);
}

// queued settles one send. error is null when all of its tasks are stored.
internal.queued = (id, error) => {
  const entry = MapPrototypeGet(waiting, id);
  if (entry === undefined) return;
  MapPrototypeDelete(waiting, id);
  const { capability } = entry;
  if (error === null || error === undefined) capability.resolve(undefined);
  else capability.reject(new Error(error));
};

internal.onForget((run) => { internal.forgetIn(waiting, run); });

internal.bindingKinds.queues = (name, worker) => ObjectFreeze(new WorkerQueue(TOKEN, worker));
