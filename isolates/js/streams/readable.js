// streams/readable.js holds the state of readable streams, their readers and the default controller, as the abstract
// operations of the Streams standard. The public classes are in streams/readable_class.js and wrap this state.

"use strict";

const {
  NumberIsNaN, PromiseReject, PromiseResolve, Queue, RangeError, ReflectApply, TypeError, sealedProto,
} = primordials;
const { follow, markHandled, newCapability, resolvedWith, upon } = internal;

const READABLE = 0;
const CLOSED = 1;
const ERRORED = 2;

class StreamState {
  state = READABLE;
  reader = null;
  storedError = undefined;
  disturbed = false;
  controller = null;
  handle = null; // the ReadableStream that handler code sees
  source = null; // the Source whose bytes Go has
}
sealedProto(StreamState);

// Source names what a stream's bytes come from in Go. While nothing has read the stream, Go can pass them on without
// JavaScript.
class Source {
  run; // that Go has it for
  id; // a subrequest, or 0 for the body of the event
  length; // of the body, or -1
  constructor(run, id, length) {
    this.run = run;
    this.id = id;
    this.length = length;
  }
}
sealedProto(Source);

// ReadRequest is a request for a chunk: three functions.
class ReadRequest {
  chunk;
  close;
  error;
  constructor(chunk, close, error) {
    this.chunk = chunk;
    this.close = close;
    this.error = error;
  }
}
sealedProto(ReadRequest);

class ReaderState {
  stream;
  closed; // capability
  requests = new Queue();
  byob;
  constructor(byob) {
    this.byob = byob;
  }
}
sealedProto(ReaderState);

// ---- streams ----

function isLocked(stream) {
  return stream.reader !== null;
}

function streamCancel(stream, reason) {
  stream.disturbed = true;
  if (stream.state === CLOSED) return PromiseResolve(undefined);
  if (stream.state === ERRORED) return PromiseReject(stream.storedError);
  streamClose(stream);
  const { reader } = stream;
  if (reader !== null && reader.byob) {
    const { requests } = reader;
    reader.requests = new Queue();
    while (requests.length > 0) requests.shift().close(undefined);
  }
  const done = newCapability();
  follow(done, stream.controller.cancelSteps(reason));
  return done.promise;
}

function streamClose(stream) {
  stream.state = CLOSED;
  const { reader } = stream;
  if (reader === null) return;
  reader.closed.resolve(undefined);
  if (reader.byob) return;
  const { requests } = reader;
  reader.requests = new Queue();
  while (requests.length > 0) requests.shift().close();
}

function streamError(stream, error) {
  stream.state = ERRORED;
  stream.storedError = error;
  const { reader } = stream;
  if (reader === null) return;
  reader.closed.reject(error);
  markHandled(reader.closed.promise);
  errorRequests(reader, error);
}

function errorRequests(reader, error) {
  const { requests } = reader;
  reader.requests = new Queue();
  while (requests.length > 0) requests.shift().error(error);
}

// ---- readers ----

function newReader(stream, byob) {
  const reader = new ReaderState(byob);
  reader.stream = stream;
  stream.reader = reader;
  reader.closed = newCapability();
  if (stream.state === CLOSED) reader.closed.resolve(undefined);
  else if (stream.state === ERRORED) {
    reader.closed.reject(stream.storedError);
    markHandled(reader.closed.promise);
  }
  return reader;
}

function acquireReader(stream) {
  if (isLocked(stream)) throw new TypeError("the stream is locked to a reader already");
  return newReader(stream, false);
}

function releaseReader(reader) {
  const { stream } = reader;
  const error = new TypeError("the reader was released");
  if (stream.state !== READABLE) reader.closed = newCapability();
  reader.closed.reject(error);
  markHandled(reader.closed.promise);
  stream.controller.releaseSteps();
  stream.reader = null;
  reader.stream = undefined;
  errorRequests(reader, new TypeError("the reader was released"));
}

function readerRead(reader, request) {
  const { stream } = reader;
  stream.disturbed = true;
  if (stream.state === CLOSED) request.close();
  else if (stream.state === ERRORED) request.error(stream.storedError);
  else stream.controller.pullSteps(request);
}

// ---- the default controller ----

class Chunk {
  value;
  size;
  constructor(value, size) {
    this.value = value;
    this.size = size;
  }
}
sealedProto(Chunk);

class DefaultController {
  stream;
  queue = new Queue();
  total = 0;
  started = false;
  closeRequested = false;
  pulling = false;
  pullAgain = false;
  pull;
  cancel;
  size;
  highWaterMark;
  handle = null;
  bytes = false;
  cancelSteps(reason) {
    this.queue.clear();
    this.total = 0;
    const { cancel } = this;
    clearAlgorithms(this);
    return cancel(reason);
  }
  pullSteps(request) {
    if (this.queue.length === 0) {
      this.stream.reader.requests.push(request);
      callPull(this);
      return;
    }
    const chunk = this.queue.shift();
    this.total -= chunk.size;
    if (this.total < 0) this.total = 0;
    if (this.closeRequested && this.queue.length === 0) {
      clearAlgorithms(this);
      streamClose(this.stream);
    } else callPull(this);
    request.chunk(chunk.value);
  }
  releaseSteps() {}
}
sealedProto(DefaultController);

function clearAlgorithms(controller) {
  controller.pull = undefined;
  controller.cancel = undefined;
  controller.size = undefined;
}

function canCloseOrEnqueue(controller) {
  return !controller.closeRequested && controller.stream.state === READABLE;
}

function desiredSize(controller) {
  if (controller.stream.state === ERRORED) return null;
  if (controller.stream.state === CLOSED) return 0;
  return controller.highWaterMark - controller.total;
}

function shouldPull(controller) {
  if (!canCloseOrEnqueue(controller) || !controller.started) return false;
  const { reader } = controller.stream;
  if (reader !== null && reader.requests.length > 0) return true;
  return desiredSize(controller) > 0;
}

function callPull(controller) {
  if (!shouldPull(controller)) return;
  if (controller.pulling) {
    controller.pullAgain = true;
    return;
  }
  controller.pulling = true;
  upon(controller.pull(), () => {
    controller.pulling = false;
    if (!controller.pullAgain) return;
    controller.pullAgain = false;
    callPull(controller);
  }, (error) => { controllerError(controller, error); });
}

function controllerClose(controller) {
  if (!canCloseOrEnqueue(controller)) return;
  controller.closeRequested = true;
  if (controller.queue.length > 0) return;
  clearAlgorithms(controller);
  streamClose(controller.stream);
}

function controllerEnqueue(controller, value) {
  if (!canCloseOrEnqueue(controller)) return;
  const { reader } = controller.stream;
  if (reader !== null && reader.requests.length > 0) {
    reader.requests.shift().chunk(value);
    callPull(controller);
    return;
  }
  let size = 1;
  if (controller.size !== undefined) {
    try {
      size = checkSize(controller.size(value));
    } catch (error) {
      controllerError(controller, error);
      throw error;
    }
  }
  controller.queue.push(new Chunk(value, size));
  controller.total += size;
  callPull(controller);
}

function checkSize(size) {
  size = +size;
  if (NumberIsNaN(size) || size < 0 || size === Infinity) {
    throw new RangeError("the size of a chunk is not a number of zero or more");
  }
  return size;
}

function controllerError(controller, error) {
  if (controller.stream.state !== READABLE) return;
  controller.queue.clear();
  controller.total = 0;
  clearAlgorithms(controller);
  streamError(controller.stream, error);
}

// setUp connects a controller to its stream and runs start. The algorithms are functions of the runtime that return
// promises.
function setUp(stream, controller, start, pull, cancel, highWaterMark, size) {
  controller.stream = stream;
  controller.pull = pull;
  controller.cancel = cancel;
  controller.highWaterMark = highWaterMark;
  controller.size = size;
  stream.controller = controller;
  const { onStarted, onFailed } = startSteps(controller);
  upon(resolvedWith(start === undefined ? undefined : start()), onStarted, onFailed);
}

function startSteps(controller) {
  return {
    __proto__: null,
    onStarted() {
      controller.started = true;
      if (controller.bytes) internal.byteCallPull(controller);
      else callPull(controller);
    },
    onFailed(error) {
      if (controller.bytes) internal.byteError(controller, error);
      else controllerError(controller, error);
    },
  };
}

const resolved = () => PromiseResolve(undefined);

// newStream makes a stream of the runtime with a default controller.
function newStream(pull = resolved, cancel = resolved, highWaterMark = 1) {
  const stream = new StreamState();
  setUp(stream, new DefaultController(), undefined, pull, cancel, highWaterMark, undefined);
  return stream;
}

// handlerAlgorithm wraps a method of a source or sink of the handler code. The function calls it with `self` and always
// returns a promise.
function handlerAlgorithm(method, self, fixed) {
  if (method === undefined) return resolved;
  return (argument) => {
    try {
      return resolvedWith(ReflectApply(method, self, fixed === undefined ? [argument] : fixed(argument)));
    } catch (error) {
      return PromiseReject(error);
    }
  };
}

internal.streams = {
  __proto__: null,
  READABLE, CLOSED, ERRORED, Source, StreamState, ReadRequest, ReaderState, Chunk, DefaultController, isLocked, streamCancel, streamClose,
  streamError, newReader, acquireReader, releaseReader, readerRead, canCloseOrEnqueue, desiredSize, controllerClose,
  controllerEnqueue, controllerError, checkSize, setUp, newStream, handlerAlgorithm, resolved, errorRequests,
};
