// streams/writable.js is the state machine of writable streams: the abstract operations of the Streams standard. The
// classes are in streams/writable_class.js.

"use strict";

const { PromiseReject, PromiseResolve, TypeError } = primordials;
const { markHandled, newCapability, resolvedWith, upon } = internal;
const { checkSize } = internal.streams;
const {
  CLOSE, CLOSED, ERRORED, ERRORING, Entry, PendingAbort, WRITABLE, WritableController, WritableState, WriterState,
  settledCapability,
} = internal.writableParts;

function closeQueuedOrInFlight(stream) {
  return stream.closeRequest !== null || stream.inFlightClose !== null;
}

// ---- writers ----

function acquireWriter(stream) {
  if (stream.writer !== null) throw new TypeError("the stream is locked to a writer already");
  const writer = new WriterState();
  writer.stream = stream;
  stream.writer = writer;
  const { state, storedError } = stream;
  writer.closedPending = state === WRITABLE || state === ERRORING;
  if (state === WRITABLE) {
    writer.readyPending = !closeQueuedOrInFlight(stream) && stream.backpressure;
    writer.ready = writer.readyPending ? newCapability() : settledCapability(false);
    writer.closed = newCapability();
  } else if (state === ERRORING) {
    writer.ready = settledCapability(true, storedError);
    writer.closed = newCapability();
  } else if (state === CLOSED) {
    writer.ready = settledCapability(false);
    writer.closed = settledCapability(false);
  } else {
    writer.ready = settledCapability(true, storedError);
    writer.closed = settledCapability(true, storedError);
  }
  return writer;
}

function releaseWriter(writer) {
  const { stream } = writer;
  const error = new TypeError("the writer was released");
  ensureReadyRejected(writer, error);
  ensureClosedRejected(writer, error);
  stream.writer = null;
  writer.stream = undefined;
}

// ensureReadyRejected rejects the ready promise, or makes a new rejected one if the old one was already resolved.
function ensureReadyRejected(writer, error) {
  if (writer.readyPending) writer.ready.reject(error);
  else writer.ready = settledCapability(true, error);
  writer.readyPending = false;
  markHandled(writer.ready.promise);
}

function resolveReady(writer) {
  writer.ready.resolve(undefined);
  writer.readyPending = false;
}

// ensureClosedRejected does the same for the closed promise. An errored stream settles that promise only after its
// abort is over.
function ensureClosedRejected(writer, error) {
  if (writer.closedPending) writer.closed.reject(error);
  else writer.closed = settledCapability(true, error);
  writer.closedPending = false;
  markHandled(writer.closed.promise);
}

function writerDesiredSize(writer) {
  const { stream } = writer;
  if (stream.state === ERRORED || stream.state === ERRORING) return null;
  return stream.state === CLOSED ? 0 : controllerDesiredSize(stream.controller);
}

function writerWrite(writer, chunk) {
  const { stream } = writer;
  const { controller } = stream;
  const size = chunkSize(controller, chunk);
  if (stream !== writer.stream) return PromiseReject(new TypeError("write: the writer was released"));
  if (stream.state === ERRORED) return PromiseReject(stream.storedError);
  if (closeQueuedOrInFlight(stream) || stream.state === CLOSED) {
    return PromiseReject(new TypeError("write: the stream is closing or closed"));
  }
  if (stream.state === ERRORING) return PromiseReject(stream.storedError);
  const capability = newCapability();
  stream.writes.push(capability);
  controllerWrite(controller, chunk, size);
  return capability.promise;
}

function writerCloseWithErrorPropagation(writer) {
  const { stream } = writer;
  if (closeQueuedOrInFlight(stream) || stream.state === CLOSED) return PromiseResolve(undefined);
  if (stream.state === ERRORED) return PromiseReject(stream.storedError);
  return writableClose(stream);
}

// ---- streams ----

function writableClose(stream) {
  if (stream.state === CLOSED || stream.state === ERRORED) {
    return PromiseReject(new TypeError("close: the stream is closed or errored already"));
  }
  const capability = (stream.closeRequest = newCapability());
  if (stream.writer !== null && stream.backpressure && stream.state === WRITABLE) resolveReady(stream.writer);
  const { controller } = stream;
  controller.queue.push(new Entry(CLOSE, 0));
  advance(controller);
  return capability.promise;
}

function writableAbort(stream, reason) {
  if (stream.state === CLOSED || stream.state === ERRORED) return PromiseResolve(undefined);
  const { controller } = stream;
  signalAbort(controller, reason);
  if (stream.state === CLOSED || stream.state === ERRORED) return PromiseResolve(undefined);
  if (stream.pendingAbort !== null) return stream.pendingAbort.capability.promise;
  const wasErroring = stream.state === ERRORING;
  if (wasErroring) reason = undefined;
  stream.pendingAbort = new PendingAbort(reason, wasErroring);
  const { promise } = stream.pendingAbort.capability;
  if (!wasErroring) startErroring(stream, reason);
  return promise;
}

function signalAbort(controller, reason) {
  if (!controller.aborted) controller.abortReason = reason;
  controller.aborted = true;
  if (controller.signal !== null) internal.signalAbort(controller.signal, reason);
}

function startErroring(stream, reason) {
  const { controller, writer } = stream;
  stream.state = ERRORING;
  stream.storedError = reason;
  if (writer !== null) ensureReadyRejected(writer, reason);
  if (stream.inFlightWrite === null && stream.inFlightClose === null && controller.started) finishErroring(stream);
}

function finishErroring(stream) {
  stream.state = ERRORED;
  stream.controller.queue.clear();
  stream.controller.total = 0;
  const { storedError, writes } = stream;
  while (writes.length > 0) writes.shift().reject(storedError);
  const pending = stream.pendingAbort;
  if (pending === null) {
    rejectCloseAndClosed(stream);
    return;
  }
  stream.pendingAbort = null;
  if (pending.wasErroring) {
    pending.capability.reject(storedError);
    rejectCloseAndClosed(stream);
    return;
  }
  const { controller } = stream;
  const { abort } = controller;
  clearAlgorithms(controller);
  upon(abort(pending.reason), () => {
    pending.capability.resolve(undefined);
    rejectCloseAndClosed(stream);
  }, (error) => {
    pending.capability.reject(error);
    rejectCloseAndClosed(stream);
  });
}

function rejectCloseAndClosed(stream) {
  if (stream.closeRequest !== null) {
    stream.closeRequest.reject(stream.storedError);
    stream.closeRequest = null;
  }
  const { writer } = stream;
  if (writer === null) return;
  writer.closed.reject(stream.storedError);
  writer.closedPending = false;
  markHandled(writer.closed.promise);
}

function dealWithRejection(stream, error) {
  if (stream.state === WRITABLE) startErroring(stream, error);
  else finishErroring(stream);
}

function updateBackpressure(stream, backpressure) {
  const { writer } = stream;
  if (writer !== null && backpressure !== stream.backpressure) {
    if (backpressure) {
      writer.ready = newCapability();
      writer.readyPending = true;
    } else resolveReady(writer);
  }
  stream.backpressure = backpressure;
}

// ---- the controller ----

function clearAlgorithms(controller) {
  controller.write = undefined;
  controller.close = undefined;
  controller.abort = undefined;
  controller.size = undefined;
}

function controllerDesiredSize(controller) {
  return controller.highWaterMark - controller.total;
}

function hasBackpressure(controller) {
  return controllerDesiredSize(controller) <= 0;
}

function chunkSize(controller, chunk) {
  if (controller.size === undefined) return 1;
  try {
    return controller.size(chunk);
  } catch (error) {
    errorIfNeeded(controller, error);
    return 1;
  }
}

function errorIfNeeded(controller, error) {
  if (controller.stream.state === WRITABLE) controllerError(controller, error);
}

function controllerError(controller, error) {
  clearAlgorithms(controller);
  startErroring(controller.stream, error);
}

function controllerWrite(controller, chunk, size) {
  try {
    size = checkSize(size);
  } catch (error) {
    errorIfNeeded(controller, error);
    return;
  }
  controller.queue.push(new Entry(chunk, size));
  controller.total += size;
  const { stream } = controller;
  if (!closeQueuedOrInFlight(stream) && stream.state === WRITABLE) updateBackpressure(stream, hasBackpressure(controller));
  advance(controller);
}

function advance(controller) {
  const { stream } = controller;
  if (!controller.started || stream.inFlightWrite !== null) return;
  if (stream.state === ERRORING) {
    finishErroring(stream);
    return;
  }
  if (controller.queue.length === 0) return;
  const { value } = controller.queue.peek();
  if (value === CLOSE) processClose(controller);
  else processWrite(controller, value);
}

function processClose(controller) {
  const { stream } = controller;
  stream.inFlightClose = stream.closeRequest;
  stream.closeRequest = null;
  controller.queue.shift();
  const { close } = controller;
  const done = close();
  clearAlgorithms(controller);
  upon(done, () => { finishClose(stream); }, (error) => {
    stream.inFlightClose.reject(error);
    stream.inFlightClose = null;
    if (stream.pendingAbort !== null) {
      stream.pendingAbort.capability.reject(error);
      stream.pendingAbort = null;
    }
    dealWithRejection(stream, error);
  });
}

function finishClose(stream) {
  stream.inFlightClose.resolve(undefined);
  stream.inFlightClose = null;
  if (stream.state === ERRORING) {
    stream.storedError = undefined;
    if (stream.pendingAbort !== null) {
      stream.pendingAbort.capability.resolve(undefined);
      stream.pendingAbort = null;
    }
  }
  stream.state = CLOSED;
  const { writer } = stream;
  if (writer === null) return;
  writer.closed.resolve(undefined);
  writer.closedPending = false;
}

function processWrite(controller, chunk) {
  const { stream } = controller;
  stream.inFlightWrite = stream.writes.shift();
  upon(controller.write(chunk), () => {
    stream.inFlightWrite.resolve(undefined);
    stream.inFlightWrite = null;
    const entry = controller.queue.shift();
    if (entry !== undefined) controller.total -= entry.size;
    if (controller.total < 0) controller.total = 0;
    if (!closeQueuedOrInFlight(stream) && stream.state === WRITABLE) updateBackpressure(stream, hasBackpressure(controller));
    advance(controller);
  }, (error) => {
    if (stream.state === WRITABLE) clearAlgorithms(controller);
    stream.inFlightWrite.reject(error);
    stream.inFlightWrite = null;
    dealWithRejection(stream, error);
  });
}

// setUpWritable connects a controller to its stream and runs start.
function setUpWritable(stream, controller, start, write, close, abort, highWaterMark, size) {
  controller.stream = stream;
  stream.controller = controller;
  controller.write = write;
  controller.close = close;
  controller.abort = abort;
  controller.highWaterMark = highWaterMark;
  controller.size = size;
  updateBackpressure(stream, hasBackpressure(controller));
  upon(resolvedWith(start === undefined ? undefined : start()), () => {
    controller.started = true;
    advance(controller);
  }, (error) => {
    controller.started = true;
    dealWithRejection(stream, error);
  });
}

primordials.ObjectAssign(internal.streams, {
  WRITABLE, WRITABLE_ERRORING: ERRORING, WRITABLE_ERRORED: ERRORED, WRITABLE_CLOSED: CLOSED, WritableController, WritableState,
  acquireWriter, closeQueuedOrInFlight, errorIfNeeded, releaseWriter, setUpWritable, writableAbort, writableClose,
  writableControllerError: controllerError, writerCloseWithErrorPropagation, writerDesiredSize, writerWrite,
});
