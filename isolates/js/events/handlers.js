// events/handlers.js runs one event: it calls the handler, answers, waits for waitUntil, and reports the end.

"use strict";

const {
  Error, JSONParse, JSONStringify, List, ObjectDefineProperty, ObjectPrototypeHasOwnProperty, ReflectApply, ReflectGetOwnPropertyDescriptor, ReflectHas,
  StringPrototypeToLowerCase, TypeError, globalThis, lengthOf, sealedProto,
} = primordials;
const {
  DOMException, describe, handlerBits, hasListeners, isBodyUnusable, isError, isObject, peekResponse, queueMicrotask,
  sendOps, uncalled,
} = internal;
const { send } = host;
const { BATCH_DONE, DRAINED, FAIL, HANDLERS, HOOK_DONE, PIPE, PULL, REPLY, RESULT, WAIT_FAILED } = sendOps;

const MAX_BODY = 64 * 1024 * 1024;
const WHOLE = 512 * 1024; // a complete body up to this length goes with its head

// ---- handlers of the worker's module ----

class Handlers {
  self = undefined;
  routes = null; // what answers before fetch; internal.readRoutes made it
  fetch = undefined;
  task = undefined;
  scheduled = undefined;
  queue = undefined; // takes tasks in batches, in place of task
  onIdle = undefined;
  onTerminate = undefined;
}
sealedProto(Handlers);
const handlers = new Handlers();

let checked = false; // whether the module is loaded only for a Checker
internal.checkModule = () => { checked = true; };

// uncalledOf returns the bits of the exported functions that only another runtime or another mode calls. Only a
// Checker needs them. Otherwise no code reads these properties, so no getter of the handler code runs.
function uncalledOf(exported) {
  let bits = 0;
  if (handlerOf(exported.email) !== undefined) bits |= uncalled.email;
  if (handlerOf(exported.tail) !== undefined) bits |= uncalled.tail;
  if (handlerOf(exported.tailStream) !== undefined) bits |= uncalled.tailStream;
  if (handlerOf(exported.trace) !== undefined) bits |= uncalled.trace;
  if (handlerOf(exported.connect) !== undefined) bits |= uncalled.connect;
  if (handlerOf(exported.alarm) !== undefined) bits |= uncalled.alarm;
  if (handlerOf(exported.onIdle) !== undefined) bits |= uncalled.onIdle;
  if (handlerOf(exported.onTerminate) !== undefined) bits |= uncalled.onTerminate;
  return bits;
}

// findHandlers reads the module's exports once and tells Go which kinds of events the module handles.
internal.findHandlers = (namespace) => {
  let exported;
  internal.keepExports(namespace);
  if (isObject(namespace)) exported = namespace.default;
  if (isObject(exported)) {
    handlers.self = exported;
    const find = finder(exported);
    handlers.fetch = find("fetch");
    const routes = routesOf(exported);
    handlers.routes = isObject(routes) ? internal.readRoutes(routes) : null;
    handlers.task = find("task");
    handlers.scheduled = find("scheduled");
    handlers.queue = queueOf(exported, find);
    if (internal.isConcurrent()) {
      handlers.onIdle = handlerOf(exported.onIdle);
      handlers.onTerminate = handlerOf(exported.onTerminate);
    }
  }
  let bits = 0;
  if (handlers.fetch !== undefined || handlers.routes !== null || hasListeners(globalThis, "fetch")) bits |= handlerBits.fetch;
  if (handlers.task !== undefined || hasListeners(globalThis, "task")) bits |= handlerBits.task;
  if (handlers.scheduled !== undefined || hasListeners(globalThis, "scheduled")) bits |= handlerBits.scheduled;
  if (handlers.queue !== undefined) bits |= handlerBits.queue;
  if (internal.hasEntrypoints()) bits |= handlerBits.entrypoints;
  if (handlers.onIdle !== undefined) bits |= handlerBits.onIdle;
  if (handlers.onTerminate !== undefined) bits |= handlerBits.onTerminate;
  if (checked && isObject(exported)) {
    try {
      bits |= uncalledOf(exported);
      if (internal.handlerClass(exported, methods) !== undefined) bits |= uncalledOf(exported.prototype);
    } catch { // a getter or a Proxy of the handler code can throw
    }
  }
  send(HANDLERS, bits);
};

// routesOf reads a property that other runtimes do not know, so a getter or a Proxy of the handler code may throw.
function routesOf(exported) {
  try {
    return exported.routes;
  } catch {
    return undefined;
  }
}

// queueOf is like routesOf. A router that makes a function of any name that is read has no queue handler.
function queueOf(exported, find) {
  try {
    return typeof exported === "function" || ReflectHas(exported, "queue") ? find("queue") : undefined;
  } catch {
    return undefined;
  }
}

function handlerOf(value) {
  return typeof value === "function" ? value : undefined;
}

const methods = ["fetch", "task", "queue", "scheduled"]; // a class with one of them is one whose instances answer events

// finder returns a function from the name of a kind of events to their handler. The handlers of a class are its methods.
function finder(exported) {
  const Class = internal.handlerClass(exported, methods);
  return Class === undefined ? (name) => handlerOf(exported[name]) : (name) => internal.methodOf(Class, name);
}

// ---- the end of an event ----

function finish(run) {
  run.answered = true;
  if (run.waiting === 0) internal.end(run);
  return run.over;
}

function failed(run, reason, text, stack) {
  if (run.answered || run.over) return;
  send(FAIL, run.id, reason, text, stack, finish(run));
}

function failWith(run, error) {
  if (run.answered || run.over) return;
  const reason = run.malformed !== null && run.malformed === error ? "malformed" : "exception";
  const described = describe(error);
  failed(run, reason, described.text, described.stack);
}

// settleWait counts down a settled waitUntil promise one microtask later. Its reactions can still call waitUntil.
function settleWait(run) {
  queueMicrotask(() => {
    run.waiting--;
    if (run.waiting > 0 || !run.answered || run.over) return;
    internal.end(run);
    send(DRAINED, run.id);
  });
}

async function drain(run, promise) {
  try {
    await promise;
  } catch (error) {
    if (!run.over) {
      const described = describe(error);
      send(WAIT_FAILED, run.id, described.text, described.stack);
    }
  }
  settleWait(run);
}

internal.waitUntil = (run, promise) => {
  if (run.over) throw new DOMException("waitUntil: the event is over", "InvalidStateError");
  run.waiting++;
  drain(run, promise);
};

// ---- answers ----

// answerFetch sends a Response. It may first read the body to the end, or send the body in chunks.
function answerFetch(run, value) {
  if (run.answered || run.over) return;
  const s = peekResponse(value);
  if (s === undefined) {
    failWith(run, new TypeError(`the fetch handler answered with ${internal.inspectBrief(value)}, not a Response`));
    return;
  }
  if (s.stream === null && !s.used && typeof s.source !== "object" && s.status !== 0 && run.credit === 0) {
    s.used = true;
    reply(run, s, s.source);
    return;
  }
  answerSlowly(run, s);
}

function answerSlowly(run, s) {
  if (s.status === 0) {
    failWith(run, new TypeError("the fetch handler answered with a network error (Response.error())"));
  } else if (s.webSocket !== null) {
    replySocket(run, s);
  } else if (isBodyUnusable(s)) {
    failWith(run, new TypeError("the fetch handler answered with a Response whose body was read already, or is locked"));
  } else if (s.stream === null) {
    if (s.source !== null) s.used = true;
    const bytes = s.source === null ? null : internal.sourceBytes(s.source, false);
    if (run.credit > 0 && bytes !== null && lengthOf(bytes) > WHOLE) replyInChunks(run, s, internal.streamOfBytes(bytes));
    else reply(run, s, bytes);
  } else if (run.credit > 0) {
    replyInChunks(run, s, s.stream);
  } else {
    internal.readAll(s.stream, MAX_BODY, (bytes) => reply(run, s, bytes), (error) => failWith(run, error));
  }
}

function reply(run, s, body) {
  if (run.answered || run.over) return;
  const drained = run.waiting === 0;
  try {
    const headers = internal.decodedResponseHeaders(s);
    if (s.statusText === "") send(REPLY, run.id, s.status, headers, body, drained);
    else send(REPLY, run.id, s.status, headers, body, drained, false, s.statusText);
  } catch (error) {
    failWith(run, error);
    return;
  }
  finish(run);
}

// replySocket gives the client its end of a WebSocketPair.
function replySocket(run, s) {
  try {
    const id = internal.giveSocket(s.webSocket);
    internal.speakFor(run);
    send(REPLY, run.id, s.status, internal.flatResponseHeaders(s), null, run.waiting === 0, false, s.statusText, id);
  } catch (error) {
    failWith(run, error);
    return;
  }
  finish(run);
}

// withLength returns the headers with the length of the body, unless the handler has set one.
function withLength(flat, length) {
  const list = new List();
  for (let i = 0; i + 1 < flat.length; i += 2) {
    if (StringPrototypeToLowerCase(flat[i]) === "content-length") return flat;
    list[list.length] = flat[i];
    list[list.length] = flat[i + 1];
  }
  list[list.length] = "content-length";
  list[list.length] = `${length}`;
  return list;
}

// replyInChunks sends the head, then the body as the requester takes it. The event continues until the body ends.
function replyInChunks(run, s, stream) {
  let sender = null;
  let source;
  try {
    const length = internal.fixedLengthOf(stream);
    source = internal.takeSource(stream, run);
    if (source === null) sender = internal.newSender(run, stream, () => settleWait(run));
    const headers = source === null ? internal.decodedResponseHeaders(s) : internal.flatResponseHeaders(s);
    send(REPLY, run.id, s.status, length < 0 ? headers : withLength(headers, length), null, false, true, s.statusText);
  } catch (error) {
    failWith(run, error);
    return;
  }
  run.answered = true;
  run.waiting++;
  run.sender = sender;
  if (source === null) internal.readOn(sender);
  else send(PIPE, run.id, source.id);
}

// piped handles the end of a body that Go has sent from its source.
internal.piped = (id) => {
  const run = internal.runById(id);
  if (run !== undefined) settleWait(run);
};

// pullParts makes the request's body a stream of the parts that Go reads one at a time. length is -1 if it is not known.
function pullParts(run, request, length) {
  run.parts = internal.newFeed(() => { run.parts = null; }, () => {
    if (!run.over) send(PULL, run.id);
  }, new internal.streams.Source(run, 0, length));
  internal.requestState(request).stream = run.parts.stream;
}

// takePart handles a part from Go, or the end of the body, or the error.
internal.takePart = (id, bytes, error) => {
  const run = internal.runById(id);
  if (run === undefined || run.parts === null) return;
  const { parts } = run;
  if (bytes !== undefined && bytes !== null) parts.push(bytes);
  else {
    run.parts = null;
    if (error === undefined) parts.close();
    else parts.error(new TypeError(error));
  }
};

// abortRun handles an abort by the requester: no client waits for the answer.
internal.abortRun = (id, why) => {
  const run = internal.runById(id);
  if (run === undefined || run.request === null) return;
  internal.startIn(run, () => {
    const reason = new DOMException(why, "AbortError");
    const { sender } = run;
    const cut = sender !== null && !sender.over;
    if (cut) sender.broke(reason);
    internal.signalAbort(internal.requestSignal(internal.requestState(run.request)), reason);
    if (cut) sender.drop(reason);
  });
};

// cancelRun handles the cancellation of the event: Go ends the run soon.
internal.cancelRun = (id, why) => {
  const run = internal.runById(id);
  if (run === undefined) return;
  internal.startIn(run, () => {
    run.cancelled = new DOMException(why, "AbortError");
    if (run.signal !== null) internal.signalAbort(run.signal, run.cancelled);
    if (run.request !== null) internal.signalAbort(internal.requestSignal(internal.requestState(run.request)), run.cancelled);
  });
};

// answerTask sends the result of a task or schedule as JSON.
function answerTask(run, value) {
  if (run.answered || run.over) return;
  let text;
  try {
    text = resultText(value);
  } catch (error) {
    failWith(run, error);
    return;
  }
  const drained = run.waiting === 0;
  try {
    send(RESULT, run.id, text, drained);
  } catch (error) {
    failWith(run, error);
    return;
  }
  finish(run);
}

function resultText(value) {
  if (value === undefined) return '{"success":true}';
  if (isObject(value) && typeof value === "object" && ObjectPrototypeHasOwnProperty(value, "success")) {
    const { success, data, error } = value;
    return `{"success":${!!success}${member("data", data)}${member("error", isError(error) ? describe(error).text : error)}}`;
  }
  const json = JSONStringify(value);
  if (json === undefined) throw new TypeError(`the result ${internal.inspectBrief(value)} has no JSON form`);
  return `{"success":true,"data":${json}}`;
}

function member(name, value) {
  if (value === undefined) return "";
  const json = JSONStringify(value);
  if (json === undefined) throw new TypeError(`the result's ${name} ${internal.inspectBrief(value)} has no JSON form`);
  return `,"${name}":${json}`;
}

// answerBatch ends a batch. What is not decided is handled.
function answerBatch(run, value) {
  if (run.answered || run.over) return;
  try {
    internal.readFailures(run.batch, value);
  } catch (error) {
    failWith(run, error);
    return;
  }
  send(BATCH_DONE, run.id, finish(run));
}

function answer(run, value) {
  if (run.batch !== null) answerBatch(run, value);
  else if (run.kind === handlerBits.fetch) answerFetch(run, value);
  else answerTask(run, value);
}

async function answerLater(run, promise) {
  let value;
  try {
    value = await promise;
  } catch (error) {
    failWith(run, error);
    return;
  }
  answer(run, value);
}
internal.answerWith = answerLater;

// ---- starting ----

// call runs a handler of export default and answers with its result.
function call(run, handler, argument) {
  let result;
  try {
    result = ReflectApply(handler, handlers.self, [argument, internal.env(), internal.newContext(run)]);
  } catch (error) {
    failWith(run, error);
    return;
  }
  if (peekResponse(result) !== undefined) answer(run, result);
  else answerLater(run, result);
}

// listen passes the event to the listeners of addEventListener. A fetch event waits for respondWith, however late it
// comes. A task event without respondWith ends when the promises of all its listeners have settled.
function listen(run, event, name) {
  if (!hasListeners(globalThis, name)) {
    failed(run, "no-handler", `worker has no ${name} handler`, "");
    return;
  }
  let open = 1;
  const closed = () => {
    open--;
    if (open === 0 && !run.responded && run.kind !== handlerBits.fetch) answerTask(run, undefined);
  };
  const threw = (error) => {
    if (run.responded) internal.reportException(error);
    else failWith(run, error);
  };
  const follow = async (result) => {
    try {
      await result;
    } catch (error) {
      threw(error);
    }
    closed();
  };
  internal.eventState(event).trusted = true;
  internal.dispatch(globalThis, event, threw, (result) => {
    if (!isObject(result)) return;
    open++;
    follow(result);
  });
  closed();
}

// answerRoute answers a fetch event by the worker's routes. It returns false if no route answers and there is a handler.
function answerRoute(run, request) {
  const s = internal.requestState(request);
  const { answer: found, params, allow } = internal.matchRoute(handlers.routes, s.method, internal.requestURL(s));
  if (typeof found === "function") {
    ObjectDefineProperty(request, "params", { __proto__: null, value: params, writable: true, enumerable: true, configurable: true });
    call(run, found, request);
  } else if (found !== undefined) answerAgain(run, found);
  else if (handlers.fetch !== undefined || hasListeners(globalThis, "fetch")) return false;
  else answer(run, internal.noRoute(allow));
  return true;
}

// answerAgain answers with a Response that answers other events too.
function answerAgain(run, response) {
  let copy;
  try {
    copy = internal.cloneResponse(response);
  } catch (error) {
    failWith(run, error);
    return;
  }
  answer(run, copy);
}

function answerOther(run, request) {
  if (handlers.fetch !== undefined) call(run, handlers.fetch, request);
  else listen(run, internal.newFetchEvent(run, request), "fetch");
}

internal.startFetch = (id, method, url, headers, body, credit, length, service) => {
  internal.startIn(internal.begin(id, handlerBits.fetch), (run) => {
    const request = internal.newEventRequest(method, url, headers, body);
    run.request = request;
    if (credit !== undefined) {
      run.credit = credit;
      if (length !== null) pullParts(run, request, length);
    }
    if (service !== undefined) internal.setCf(request, service[1] === "" ? undefined : JSONParse(service[1]));
    if (service !== undefined && service[0] !== "") answerEntrypoint(run, request, service[0]);
    else if (handlers.routes === null || !answerRoute(run, request)) answerOther(run, request);
  });
};

function answerEntrypoint(run, request, entrypoint) {
  const handler = internal.fetchOf(entrypoint);
  if (handler === undefined) failed(run, "no-handler", `the worker has no entrypoint ${entrypoint} with a fetch handler`, "");
  else call(run, handler, request);
}

internal.startMethod = (id, entrypoint, method, args) => {
  internal.startIn(internal.begin(id, handlerBits.fetch), (run) => {
    answerMethod(run, () => internal.callEntrypoint(entrypoint, method, internal.deserialize(args), internal.newContext(run)));
  });
};

const noHeaders = new List();

// answerMethod answers with what a method returns or throws.
async function answerMethod(run, callIt) {
  let threw = false;
  let value;
  try {
    value = await callIt();
  } catch (error) {
    threw = true;
    value = error;
  }
  if (run.answered || run.over) return;
  let bytes;
  for (let tries = 0; bytes === undefined; tries++) {
    try {
      bytes = internal.encodeResult(threw, value);
    } catch (error) { // the error is thrown instead of the result; of what is thrown and has no clone, its text is left
      if (!threw) value = error;
      else if (tries < 2) value = new Error(describe(value).text);
      else value = describe(value).text; // the worker's code ran for the stack of that error
      threw = true;
    }
  }
  send(REPLY, run.id, threw ? 500 : 200, noHeaders, bytes, run.waiting === 0);
  finish(run);
}

internal.startTask = (id, eventId, attempt, headers, body, replays = 0) => {
  internal.startIn(internal.begin(id, handlerBits.task), (run) => {
    const data = new internal.TaskData(run, "task", eventId, attempt, headers, body, 0, "");
    data.replays = replays;
    if (handlers.task !== undefined) call(run, handlers.task, internal.newTaskInfo(data));
    else listen(run, internal.newTaskEvent(data), "task");
  });
};

internal.startScheduled = (id, eventId, attempt, headers, body, scheduledTime, cron, replays = 0) => {
  internal.startIn(internal.begin(id, handlerBits.scheduled), (run) => {
    const data = new internal.TaskData(run, "scheduled", eventId, attempt, headers, body, scheduledTime, cron);
    data.replays = replays;
    if (handlers.scheduled !== undefined) call(run, handlers.scheduled, internal.newScheduledInfo(data));
    else listen(run, internal.newScheduledEvent(data), "scheduled");
  });
};

internal.startBatch = (id, queue, ids, numbers, headers, content) => {
  internal.startIn(internal.begin(id, handlerBits.task), (run) => {
    if (handlers.queue === undefined) {
      failed(run, "no-handler", "worker has no queue handler", "");
      return;
    }
    run.batch = internal.newBatch(run, queue, ids, numbers, headers, content);
    if (run.batch.messages.length === 0) answerBatch(run, undefined); // all bodies are malformed
    else call(run, handlers.queue, internal.newMessageBatch(run.batch));
  });
};

// ---- hooks of a persistent context, between events ----

internal.startHook = async (bit) => {
  try {
    const hook = bit === handlerBits.onIdle ? handlers.onIdle : handlers.onTerminate;
    await ReflectApply(hook, handlers.self, [internal.env()]);
  } catch (error) {
    internal.reportException(error);
  }
  internal.speakFor(null);
  send(HOOK_DONE, bit);
};

// ---- shared ----

// shared is an object for the worker. It lives as long as a persistent context, and elsewhere as long as the event.
let shared;
let sharedIn = null;
const members = {
  get shared() {
    if (shared === undefined || !internal.isConcurrent() && sharedIn !== internal.acting()) {
      shared = {};
      sharedIn = internal.acting();
    }
    return shared;
  },
  set shared(value) {
    shared = value;
    sharedIn = internal.acting();
  },
};
ObjectDefineProperty(globalThis, "shared",
  { __proto__: null, ...ReflectGetOwnPropertyDescriptor(members, "shared"), enumerable: false, configurable: true });
