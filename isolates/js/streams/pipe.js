// streams/pipe.js is pipeTo. It reads from one stream and writes to another until either ends or fails, or a signal
// aborts.

"use strict";

const { List, PromiseResolve, TypeError, sealedProto } = primordials;
const { markHandled, newCapability, noop, onAbort, signalState, toDictionary, upon } = internal;
const { streams } = internal;
const {
  CLOSED, ERRORED, READABLE, ReadRequest, WRITABLE, WRITABLE_CLOSED, WRITABLE_ERRORED, acquireReader, acquireWriter,
  closeQueuedOrInFlight, readerRead, releaseReader, releaseWriter, streamCancel, writableAbort,
  writerCloseWithErrorPropagation, writerWrite,
} = streams;

streams.readPipeOptions = (options) => {
  const init = toDictionary(options, "the pipe's options");
  if (init === undefined) {
    return { __proto__: null, preventAbort: false, preventCancel: false, preventClose: false, signal: undefined };
  }
  const preventAbort = !!init.preventAbort;
  const preventCancel = !!init.preventCancel;
  const preventClose = !!init.preventClose;
  const { signal } = init;
  if (signal !== undefined && !internal.isAbortSignal(signal)) throw new TypeError("the pipe's signal is not an AbortSignal");
  return { __proto__: null, preventAbort, preventCancel, preventClose, signal };
};

class Pipe {
  source;
  target;
  reader;
  writer;
  options;
  done = newCapability();
  shuttingDown = false;
  finished = false;
  currentWrite = PromiseResolve(undefined);
  unlisten = noop;
  constructor(source, target, options) {
    this.source = source;
    this.target = target;
    this.options = options;
    this.reader = acquireReader(source);
    this.writer = acquireWriter(target);
    source.disturbed = true;
  }
}
sealedProto(Pipe);

streams.pipeTo = (source, target, options) => {
  const p = new Pipe(source, target, options);
  const { signal } = options;
  if (signal !== undefined) {
    if (signalState(signal).aborted) {
      aborted(p, signalState(signal).reason);
      return p.done.promise;
    }
    p.unlisten = onAbort(signal, (reason) => aborted(p, reason));
  }
  watch(p);
  if (!p.shuttingDown) step(p);
  return p.done.promise;
};

// watch propagates errors and closing in both directions, immediately or when they occur.
function watch(p) {
  const { source, target } = p;
  if (source.state === ERRORED) sourceFailed(p, source.storedError);
  else upon(p.reader.closed.promise, noop, (error) => { if (source.state === ERRORED) sourceFailed(p, error); });
  if (target.state === WRITABLE_ERRORED) targetFailed(p, target.storedError);
  else upon(p.writer.closed.promise, noop, (error) => { if (target.state === WRITABLE_ERRORED) targetFailed(p, error); });
  if (source.state === CLOSED) sourceClosed(p);
  else upon(p.reader.closed.promise, () => { sourceClosed(p); }, noop);
  if (closeQueuedOrInFlight(target) || target.state === WRITABLE_CLOSED) targetClosed(p);
}

function sourceFailed(p, error) {
  if (p.options.preventAbort) shutdown(p, undefined, true, error);
  else shutdown(p, () => writableAbort(p.target, error), true, error);
}

function targetFailed(p, error) {
  if (p.options.preventCancel) shutdown(p, undefined, true, error);
  else shutdown(p, () => streamCancel(p.source, error), true, error);
}

function sourceClosed(p) {
  if (p.options.preventClose) shutdown(p, undefined, false, undefined);
  else shutdown(p, () => writerCloseWithErrorPropagation(p.writer), false, undefined);
}

function targetClosed(p) {
  const error = new TypeError("pipeTo: the destination is closed or closing");
  if (p.options.preventCancel) shutdown(p, undefined, true, error);
  else shutdown(p, () => streamCancel(p.source, error), true, error);
}

function aborted(p, reason) {
  const { options, source, target } = p;
  shutdown(p, () => {
    const actions = new List();
    if (!options.preventAbort && target.state === WRITABLE) actions[actions.length] = writableAbort(target, reason);
    if (!options.preventCancel && source.state === READABLE) actions[actions.length] = streamCancel(source, reason);
    return waitForAll(actions);
  }, true, reason);
}

function waitForAll(promises) {
  const all = newCapability();
  let left = promises.length;
  if (left === 0) all.resolve(undefined);
  for (let i = 0; i < promises.length; i++) {
    upon(promises[i], () => { if (--left === 0) all.resolve(undefined); }, (error) => { all.reject(error); });
  }
  return all.promise;
}

// step waits until the target has room, reads one chunk and writes it.
function step(p) {
  if (p.shuttingDown) return;
  upon(p.writer.ready.promise, () => {
    if (p.shuttingDown) return;
    const queued = p.source.controller.queue.length > 0;
    readerRead(p.reader, new ReadRequest(queued ? (chunk) => { write(p, chunk); } : (chunk) => { writeSoon(p, chunk); }, noop, noop));
  }, noop);
}

function write(p, chunk) {
  p.currentWrite = writerWrite(p.writer, chunk);
  markHandled(p.currentWrite);
  step(p);
}

// writeSoon writes a chunk that arrived while the pipe waited. Such a chunk comes from inside enqueue(), and the code
// must not call a sink there.
function writeSoon(p, chunk) {
  const written = newCapability();
  p.currentWrite = written.promise;
  internal.queueMicrotask(() => {
    if (p.writer.stream !== undefined) write(p, chunk);
    written.resolve(undefined);
  });
}

// shutdown ends the pipe once. It waits for active writes, runs the action, then finalizes.
function shutdown(p, action, isError, error) {
  if (p.shuttingDown) return;
  p.shuttingDown = true;
  const act = () => {
    if (action === undefined) {
      finalize(p, isError, error);
      return;
    }
    upon(action(), () => { finalize(p, isError, error); }, (newError) => { finalize(p, true, newError); });
  };
  if (p.target.state === WRITABLE && !closeQueuedOrInFlight(p.target)) afterWrites(p, act);
  else act();
}

function afterWrites(p, act) {
  const last = p.currentWrite;
  const next = () => {
    if (p.currentWrite === last) act();
    else afterWrites(p, act);
  };
  upon(last, next, next);
}

function finalize(p, isError, error) {
  if (p.finished) return;
  p.finished = true;
  releaseWriter(p.writer);
  releaseReader(p.reader);
  p.unlisten();
  if (isError) p.done.reject(error);
  else p.done.resolve(undefined);
}
