// events/entry.js is the one function that Go calls. It also finishes the global object.

"use strict";

const { ReflectDeleteProperty, TypeError, globalThis } = primordials;
const { defineAttribute, describe, entryOps, sendOps } = internal;
const { lazy, send } = host;
const {
  ABORT, BATCH, BUILTIN, CALLED, CANCEL, CHUNK, CREDIT, DESCRIBE, ENDED, ENV, FETCH_EVENT, FETCH_FAILED, GATHERED, HANDLED, HOOK, METHOD_EVENT, MODULE, PART, PIPED, QUEUED, REDIRECT, RESPONSE,
  SCHEDULED_EVENT, SOCKET_CLOSED, SOCKET_MESSAGE, SOCKET_OPENED, SOCKET_SENT, TASK_EVENT,
  LOOKED_UP, TCP_CLOSED, TCP_DATA, TCP_OPENED, TCP_SENT, TIMERS, UNHANDLED, UPLOAD_WANTED, WHOLE, WORKED,
} = entryOps;

// describeFailure tells Go what a module threw during its evaluation. There is no event, so the id is 0.
function describeFailure(error) {
  const described = describe(error);
  send(sendOps.FAIL, 0, "exception", described.text, described.stack, true);
}

// loaded reads the exports of a module. What a getter of them throws, the module threw.
function loaded(namespace) {
  try {
    internal.findHandlers(namespace);
  } catch (error) {
    describeFailure(error);
  }
}

// prepare is the first call into a context. None of our limits bounds shared memory. V8 adds it, and WebAssembly, to a
// context that it makes from a snapshot, so it cannot be removed earlier. Of WebAssembly wasm/webassembly.js replaces
// what compiles.
function prepare(texts, json, bindings, concurrent, checked, binaryType) {
  primordials.takeLate();
  internal.startFeatures();
  ReflectDeleteProperty(globalThis, "SharedArrayBuffer");
  ReflectDeleteProperty(globalThis, "Atomics");
  ReflectDeleteProperty(globalThis, "WebAssembly");
  lazy(globalThis, "WebAssembly", false);
  internal.buildEnv(texts, json, bindings);
  internal.settings.binaryType = binaryType;
  if (concurrent) internal.runConcurrently();
  if (checked) internal.checkModule();
}

// exportsOf lists the names and values of a module of the runtime. v8x/module.cc has these modules.
function exportsOf(module) {
  switch (module) {
    case 0: return internal.builtinExports();
    case 1: return internal.nodeExports();
    case 2: return internal.socketsExports();
    default: return internal.wasmExports();
  }
}

host.entry((op, a, b, c, d, e, f, g, h) => {
  internal.enter(op === UNHANDLED); // an unhandled rejection comes with the frame of its promise
  try {
    return act(op, a, b, c, d, e, f, g, h);
  } finally {
    internal.leave();
  }
});

function act(op, a, b, c, d, e, f, g, h) {
  switch (op) {
    case FETCH_EVENT: return internal.startFetch(a, b, c, d, e, f, g, h);
    case METHOD_EVENT: return internal.startMethod(a, b, c, d);
    case TASK_EVENT: return internal.startTask(a, b, c, d, e, f);
    case BATCH: return internal.startBatch(a, b, c, d, e, f);
    case SCHEDULED_EVENT: return internal.startScheduled(a, b, c, d, e, f, g, h);
    case TIMERS: return internal.fireTimers(a);
    case RESPONSE: return internal.fetchResponse(a, b, c, d, e, f);
    case WHOLE: return internal.fetchWhole(a, b, c, d, e);
    case CHUNK: return internal.fetchChunk(a, b);
    case REDIRECT: return internal.fetchRedirect(a, b, c, d, e);
    case UPLOAD_WANTED: return internal.uploadWanted(a, b);
    case FETCH_FAILED: return internal.fetchFailed(a, b, c, d);
    case QUEUED: return internal.queued(a, b);
    case CALLED: return internal.called(a, b, c, d);
    case WORKED: return internal.worked(a, b);
    case SOCKET_OPENED: return internal.socketOpened(a, b);
    case SOCKET_MESSAGE: return internal.socketMessage(a, b, c);
    case SOCKET_SENT: return internal.socketSent(a, b, c);
    case SOCKET_CLOSED: return internal.socketClosed(a, b, c, d, e);
    case TCP_OPENED: return internal.tcpOpened(a, b, c);
    case TCP_DATA: return internal.tcpData(a, b);
    case TCP_SENT: return internal.tcpSent(a, b, c);
    case TCP_CLOSED: return internal.tcpClosed(a, b, c);
    case LOOKED_UP: return internal.lookedUp(a, b, c);
    case ENV: return prepare(a, b, c, d, e, f);
    case BUILTIN: return exportsOf(a);
    case MODULE: return loaded(a);
    case UNHANDLED: return internal.unhandled(a, b);
    case HANDLED: return internal.handledLate(a);
    case DESCRIBE: return describeFailure(a);
    case CREDIT: return internal.grantCredit(a, b);
    case ABORT: return internal.abortRun(a, b);
    case CANCEL: return internal.cancelRun(a, b);
    case PIPED: return internal.piped(a);
    case GATHERED: return internal.gathered(a, b, c);
    case PART: return internal.takePart(a, b, c);
    case ENDED: return internal.endById(a);
    case HOOK: internal.startHook(a); return;
    default: throw new TypeError(`unknown entry ${op}`);
  }
}

// ---- the global object ----

defineAttribute("self", () => globalThis, true);
