// events/batch.js holds what a queue handler gets: the batch with its messages, in Cloudflare's shape. Each message is a
// task event. It also reads what the handler returns.

"use strict";

const {
  ArrayIsArray, Date, JSONParse, List, ObjectDefineProperty, StringPrototypeIncludes, StringPrototypeSlice, StringPrototypeStartsWith,
  StringPrototypeToLowerCase, TypeError, TypedArrayPrototypeGetBuffer, Uint8Array, sealedProto, subarray,
} = primordials;
const {
  TOKEN, decisions, defineInterface, describe, illegalConstructor, illegalInvocation, isObject, listFrom, sendOps,
} = internal;
const { decode, encode, send } = host;

const NUMBERS = 4; // of a message: when it was stored, attempt, bytes of the body, strings of the headers

// BatchData is the state of a batch. Its lists have an entry for each event that Go sent. An event whose body is
// malformed has no message.
class BatchData {
  run;
  queue;
  ids;
  headers; // of all messages: name, value, name, value
  decided = new List(); // a decision for each event
  messages = []; // what the handler gets
  metadata = undefined;
  constructor(run, queue, ids, headers) {
    this.run = run;
    this.queue = queue;
    this.ids = ids;
    this.headers = headers;
  }
}
sealedProto(BatchData);

// decide tells Go what becomes of an event. The first decision holds.
function decide(data, i, decision, delay, reason = "", message = "") {
  if (data.decided[i] !== decisions.UNDECIDED || data.run.over) return;
  data.decided[i] = decision;
  send(sendOps.DECIDE, data.run.id, i, decision, delay, reason, message);
}

function decideAll(data, decision, delay) {
  for (let i = 0; i < data.decided.length; i++) decide(data, i, decision, delay);
}

class Message {
  #batch;
  #index;
  #first; // of its headers
  #end;
  #headers = null;
  #source = { __proto__: null, source: undefined };
  id;
  timestamp;
  body;
  attempts;
  constructor(token = undefined, batch, index, first, end, timestamp, body, attempts) {
    if (token !== TOKEN) throw illegalConstructor();
    this.#batch = batch;
    this.#index = index;
    this.#first = first;
    this.#end = end;
    this.id = batch.ids[index];
    this.timestamp = timestamp;
    this.body = body;
    this.attempts = attempts;
  }
  get headers() {
    if (!(#batch in this)) throw illegalInvocation("Message");
    return (this.#headers ??= internal.newHeaders(listFrom(slice(this.#batch.headers, this.#first, this.#end)), true));
  }
  get source() {
    if (!(#batch in this)) throw illegalInvocation("Message");
    return internal.sourceOf(this.#source, this.#batch.headers, this.#first, this.#end);
  }
  ack() {
    if (!(#batch in this)) throw illegalInvocation("Message");
    decide(this.#batch, this.#index, decisions.ACKED, -1);
  }
  retry(options = undefined) {
    if (!(#batch in this)) throw illegalInvocation("Message");
    decide(this.#batch, this.#index, decisions.AGAIN, internal.delayOf(options));
  }
}
defineInterface(Message, "Message", true);

class MessageBatch {
  #data;
  queue;
  messages;
  metadata;
  constructor(token = undefined, data) {
    if (token !== TOKEN) throw illegalConstructor();
    this.#data = data;
    this.queue = data.queue;
    this.messages = data.messages;
    this.metadata = data.metadata;
  }
  ackAll() { decideAll(this.#of(), decisions.ACKED, -1); }
  retryAll(options = undefined) {
    const data = this.#of();
    decideAll(data, decisions.AGAIN, internal.delayOf(options));
  }
  #of() {
    if (!(#data in this)) throw illegalInvocation("MessageBatch");
    return this.#data;
  }
  static {
    internal.addInspector((value) => isObject(value) && #data in value,
      (value) => ["queue", value.#data.queue, "messages", value.#data.messages, "metadata", value.#data.metadata]);
  }
}
defineInterface(MessageBatch, "MessageBatch", true);

function slice(list, first, end) {
  const part = new List();
  for (let i = first; i < end; i++) part[part.length] = list[i];
  return part;
}

function define(object, key, value) {
  ObjectDefineProperty(object, key, { __proto__: null, value, writable: true, enumerable: true, configurable: true });
}

// typeOf is the content type among the headers from first to end, in lower case.
function typeOf(headers, first, end) {
  for (let i = first; i + 1 < end; i += 2) {
    if (StringPrototypeToLowerCase(headers[i]) === "content-type") return StringPrototypeToLowerCase(headers[i + 1]);
  }
  return "";
}

function textOf(content) {
  return typeof content === "string" ? content : decode(content, false);
}

// jsonOf returns the value of JSON, which may begin with a BOM.
function jsonOf(content) {
  return JSONParse(internal.stripBOM(textOf(content)));
}

// bufferOf copies the bytes, so that no message can change the body of another one.
function bufferOf(content) {
  return TypedArrayPrototypeGetBuffer(new Uint8Array(typeof content === "string" ? encode(content) : content));
}

// bodyOf makes a body what env.QUEUE.send() was given: text, a value of JSON, or bytes. Without a type that says so, it
// is a value when it is JSON, and otherwise bytes. It throws for JSON that cannot be read.
function bodyOf(type, content) {
  if (StringPrototypeIncludes(type, "application/json") || StringPrototypeIncludes(type, "+json")) return jsonOf(content);
  if (StringPrototypeStartsWith(type, "text/")) return textOf(content);
  if (StringPrototypeIncludes(type, "application/octet-stream")) return bufferOf(content);
  try {
    return jsonOf(content);
  } catch {
    return bufferOf(content);
  }
}

// newBatch makes the batch of a run from flat lists. content has the bodies, one after the other: a string when all are
// ASCII, otherwise bytes.
internal.newBatch = (run, queue, ids, numbers, headers, content) => {
  const data = new BatchData(run, queue, ids, headers);
  const whole = content ?? "";
  let at = 0;
  let header = 0;
  let oldest = 0;
  for (let i = 0; i < ids.length; i++) {
    const stored = numbers[i * NUMBERS];
    const size = numbers[i * NUMBERS + 2];
    const end = header + numbers[i * NUMBERS + 3];
    const part = typeof whole === "string" ? StringPrototypeSlice(whole, at, at + size) : subarray(whole, at, at + size);
    data.decided[i] = decisions.UNDECIDED;
    try {
      const body = bodyOf(typeOf(headers, header, end), part);
      define(data.messages, data.messages.length,
        new Message(TOKEN, data, i, header, end, new Date(stored), body, numbers[i * NUMBERS + 1]));
      if (oldest === 0 || stored < oldest) oldest = stored;
    } catch (error) {
      decide(data, i, decisions.FAILED, -1, "malformed", describe(error).text);
    }
    at += size;
    header = end;
  }
  data.metadata = { metrics: { oldestMessageTimestamp: new Date(oldest) } };
  return data;
};

internal.newMessageBatch = (data) => new MessageBatch(TOKEN, data);

// readFailures decides about the messages that a handler names in {batchItemFailures: [{itemIdentifier}]}. It throws
// when one is unknown. Then nothing that is not decided counts as handled.
internal.readFailures = (data, value) => {
  if (!isObject(value)) return;
  const list = value.batchItemFailures;
  if (list === undefined || list === null) return;
  if (!ArrayIsArray(list)) throw new TypeError("batchItemFailures is not a list");
  const failed = new List();
  for (let i = 0; i < list.length; i++) {
    const item = list[i];
    const id = isObject(item) ? item.itemIdentifier : undefined;
    let known = false;
    for (let j = 0; j < data.ids.length; j++) {
      if (data.ids[j] !== id) continue;
      failed[failed.length] = j;
      known = true;
    }
    if (!known) throw new TypeError(`batchItemFailures[${i}].itemIdentifier is ${internal.inspectBrief(id)}, which is no message of the batch`);
  }
  for (let i = 0; i < failed.length; i++) {
    decide(data, failed[i], decisions.FAILED, -1, "exception", "it is in the handler's batchItemFailures");
  }
};
