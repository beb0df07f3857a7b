// fetch/eventsource.js is EventSource of HTML over fetch. Its requests and waits belong to the event that made it,
// and end with that event.

"use strict";

const { Queue, StringFromCharCode, lengthOf, sealedProto } = primordials;
const {
  DOMException, Event, EventStreamReader, EventTarget, HandlerSlot, Request, defineConstants, defineInterface, fire, illegalInvocation,
  isObject, newSignal, peekResponse, readableState, requireArguments, serializeOrigin, serializeURL, setHandler, signalAbort,
  toDictionary, toUSVString, upon,
} = internal;
const { ReadRequest, acquireReader, readerRead } = internal.streams;
const { encode } = host;

const CONNECTING = 0;
const OPEN = 1;
const CLOSED = 2;
const RECONNECT = 3000; // ms, unless the server sets another time

// isomorphic returns the UTF-8 bytes of the text as a byte string, because headers hold byte strings.
function isomorphic(text) {
  const bytes = encode(text);
  let out = "";
  for (let i = 0; i < lengthOf(bytes); i++) out += StringFromCharCode(bytes[i]);
  return out;
}

class Source {
  target;
  url;
  withCredentials;
  home = internal.here();
  state = CONNECTING;
  wait = RECONNECT;
  lastId = "";
  signal = null; // the signal of the current request
  tasks = new Queue();
  working = false;
  onopen = new HandlerSlot();
  onmessage = new HandlerSlot();
  onerror = new HandlerSlot();
  constructor(target, url, withCredentials) {
    this.target = target;
    this.url = url;
    this.withCredentials = withCredentials;
  }
  // later queues a task. Tasks run one at a time, so that the microtasks of one task run before the next task.
  later(task) {
    this.tasks.push(task);
    this.work();
  }
  work() {
    if (this.working || this.tasks.length === 0) return;
    this.working = true;
    internal.startTimerFor(this.home.run, this.home.frame, 0, () => {
      this.working = false;
      const task = this.tasks.shift();
      this.work();
      if (this.state !== CLOSED) task();
    });
  }
  connect() {
    const signal = (this.signal = newSignal());
    const headers = { __proto__: null, "Accept": "text/event-stream", "Cache-Control": "no-store" };
    if (this.lastId !== "") headers["Last-Event-ID"] = isomorphic(this.lastId);
    let answer;
    try {
      answer = internal.fetch(new Request(this.url, { __proto__: null, cache: "no-store", headers, signal }));
    } catch {
      this.fail(); // the URL is neither http nor https, or the event is over
      return;
    }
    upon(answer, (response) => {
      if (this.signal === signal) this.open(peekResponse(response), signal);
    }, () => {
      if (this.signal === signal) this.again();
    });
  }
  open(response, signal) {
    const type = internal.contentTypeOf(response);
    const mime = type === null ? null : internal.extractMimeType(type);
    if (response.status !== 200 || mime === null || mime.essence !== "text/event-stream") {
      this.fail();
      signalAbort(signal, undefined);
      return;
    }
    this.later(() => {
      this.state = OPEN;
      fire(this.target, new Event("open"));
    });
    const url = internal.parseURL(response.url, null);
    this.read(response, signal, url === null ? "null" : serializeOrigin(url));
  }
  read(response, signal, origin) {
    if (response.stream === null) {
      this.again();
      return;
    }
    const reader = acquireReader(readableState(response.stream));
    const lines = new EventStreamReader(this.lastId, (type, data) => {
      const id = (this.lastId = lines.lastId);
      this.later(() => { fire(this.target, internal.newMessageEvent(type, data, origin, id, [])); });
    }, (ms) => { this.wait = ms; });
    let busy = false;
    let more = false;
    const next = () => {
      more = true;
      if (busy) return;
      busy = true;
      while (more && this.signal === signal) {
        more = false;
        readerRead(reader, request);
      }
      busy = false;
    };
    const ended = () => {
      this.lastId = lines.lastId;
      if (this.signal === signal) this.again();
    };
    const request = new ReadRequest((bytes) => {
      lines.push(bytes);
      next();
    }, ended, ended);
    next();
  }
  // again is "reestablish the connection".
  again() {
    this.signal = null;
    this.later(() => {
      this.state = CONNECTING;
      fire(this.target, new Event("error"));
      if (this.state === CLOSED) return;
      internal.startTimerFor(this.home.run, this.home.frame, this.wait, () => {
        if (this.state === CONNECTING) this.connect();
      });
    });
  }
  // fail is "fail the connection".
  fail() {
    this.signal = null;
    this.later(() => {
      this.state = CLOSED;
      fire(this.target, new Event("error"));
    });
  }
  close() {
    this.state = CLOSED;
    this.tasks.clear();
    const { signal } = this;
    this.signal = null;
    if (signal !== null) signalAbort(signal, undefined);
  }
}
sealedProto(Source);

let sourceOf;

class EventSource extends EventTarget {
  #source;
  constructor(url, eventSourceInitDict = undefined) {
    requireArguments(arguments.length, 1, "new EventSource");
    const text = toUSVString(url);
    const withCredentials = !!toDictionary(eventSourceInitDict, "new EventSource: the init")?.withCredentials;
    const record = internal.parseURL(text, null);
    if (record === null) throw new DOMException(`${internal.inspectBrief(text)} is no valid URL`, "SyntaxError");
    super();
    this.#source = new Source(this, serializeURL(record), withCredentials);
    this.#source.connect();
  }
  static {
    sourceOf = (value) => {
      if (!isObject(value) || !(#source in value)) throw illegalInvocation("EventSource");
      return value.#source;
    };
    internal.isEventSource = (value) => isObject(value) && #source in value;
  }
  get url() { return sourceOf(this).url; }
  get withCredentials() { return sourceOf(this).withCredentials; }
  get readyState() { return sourceOf(this).state; }
  get onopen() { return sourceOf(this).onopen.value; }
  set onopen(value) { setHandler(this, sourceOf(this).onopen, "open", value); }
  get onmessage() { return sourceOf(this).onmessage.value; }
  set onmessage(value) { setHandler(this, sourceOf(this).onmessage, "message", value); }
  get onerror() { return sourceOf(this).onerror.value; }
  set onerror(value) { setHandler(this, sourceOf(this).onerror, "error", value); }
  close() { sourceOf(this).close(); }
}
defineInterface(EventSource, "EventSource");
defineConstants(EventSource, { __proto__: null, CONNECTING, OPEN, CLOSED });

internal.addInspector(internal.isEventSource, (value) => {
  const { state, url } = sourceOf(value);
  return ["url", url, "readyState", state];
});
