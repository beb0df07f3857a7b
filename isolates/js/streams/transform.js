// streams/transform.js is TransformStream of the Streams standard.

"use strict";

const { PromiseReject, RangeError, ReflectApply, TypeError, sealedProto } = primordials;
const {
  TOKEN, defineInterface, illegalConstructor, illegalInvocation, isObject, newCapability, toCallback, upon,
} = internal;
const { streams } = internal;
const {
  DefaultController, StreamState, WRITABLE_ERRORED, WRITABLE_ERRORING, WritableController, WritableState,
  controllerClose, controllerEnqueue, controllerError, desiredSize, errorIfNeeded, highWaterMark, readStrategy,
  resolved, setUp, setUpWritable, sizeAlgorithm,
} = streams;

class TransformState {
  readable = null;
  writable = null;
  backpressure = undefined;
  backpressureChange = null; // a capability
  transform;
  flush;
  cancel;
  finish = null; // the capability of cancel, abort or close, whichever came first
  handle = null;
}
sealedProto(TransformState);

let stateOf;

// given is the state of the next TransformStream. A subclass of the runtime passes nothing to super(), because handler
// code can replace the parent of a class.
let given = null;
streams.giveTransform = (t) => { given = t; };
streams.hasTransform = () => given !== null;

class TransformStream {
  #transform;
  constructor(transformer = undefined, writableStrategy = undefined, readableStrategy = undefined) {
    if (given !== null) {
      this.#transform = given;
      given = null;
      return;
    }
    if (transformer === TOKEN) {
      this.#transform = writableStrategy;
      return;
    }
    if (transformer !== undefined && !isObject(transformer)) {
      throw new TypeError("new TransformStream: the transformer is not an object");
    }
    const forWritable = readStrategy(writableStrategy, "new TransformStream");
    const forReadable = readStrategy(readableStrategy, "new TransformStream");
    this.#transform = new TransformState();
    setUpTransform(this.#transform, transformer, forWritable, forReadable);
  }
  static {
    stateOf = (value) => {
      if (!isObject(value) || !(#transform in value)) throw illegalInvocation("TransformStream");
      return value.#transform;
    };
    internal.isTransformStream = (value) => isObject(value) && #transform in value;
  }
  get readable() { return internal.readableHandle(stateOf(this).readable); }
  get writable() { return internal.writableHandle(stateOf(this).writable); }
}
defineInterface(TransformStream, "TransformStream");

const none = {
  __proto__: null, cancel: undefined, flush: undefined, readableType: undefined, start: undefined, transform: undefined,
  writableType: undefined,
};

function setUpTransform(t, transformer, forWritable, forReadable) {
  const dict = transformer ?? none;
  const cancel = optionalCallback(dict.cancel, "cancel");
  const flush = optionalCallback(dict.flush, "flush");
  const { readableType } = dict;
  const start = optionalCallback(dict.start, "start");
  const transform = optionalCallback(dict.transform, "transform");
  const { writableType } = dict;
  if (readableType !== undefined) throw new RangeError("new TransformStream: readableType is not allowed");
  if (writableType !== undefined) throw new RangeError("new TransformStream: writableType is not allowed");
  const readableMark = highWaterMark(forReadable, 0);
  const readableSize = sizeAlgorithm(forReadable);
  const writableMark = highWaterMark(forWritable, 1);
  const writableSize = sizeAlgorithm(forWritable);
  const started = newCapability();
  initialize(t, started.promise, writableMark, writableSize, readableMark, readableSize);
  const handle = new TransformStreamDefaultController(TOKEN, t);
  t.handle = handle;
  t.transform = transform === undefined ? passOn(t)
    : streams.handlerAlgorithm(transform, transformer, (chunk) => [chunk, handle]);
  t.flush = streams.handlerAlgorithm(flush, transformer, () => [handle]);
  t.cancel = streams.handlerAlgorithm(cancel, transformer);
  if (start === undefined) started.resolve(undefined);
  else started.resolve(ReflectApply(start, transformer, [handle]));
}

function optionalCallback(value, name) {
  return value === undefined ? undefined : toCallback(value, name);
}

// passOn returns the transform function for a transformer without one.
function passOn(t) {
  return (chunk) => {
    try {
      enqueue(t, chunk);
      return resolved();
    } catch (error) {
      return PromiseReject(error);
    }
  };
}

function initialize(t, started, writableMark, writableSize, readableMark, readableSize) {
  const start = () => started;
  t.writable = new WritableState();
  setUpWritable(t.writable, new WritableController(), start, (chunk) => sinkWrite(t, chunk), () => sinkClose(t),
    (reason) => sinkAbort(t, reason), writableMark, writableSize);
  t.readable = new StreamState();
  setUp(t.readable, new DefaultController(), start, () => sourcePull(t), (reason) => sourceCancel(t, reason),
    readableMark, readableSize);
  setBackpressure(t, true);
}

function setBackpressure(t, backpressure) {
  if (t.backpressureChange !== null) t.backpressureChange.resolve(undefined);
  t.backpressureChange = newCapability();
  t.backpressure = backpressure;
}

function clearAlgorithms(t) {
  t.transform = undefined;
  t.flush = undefined;
  t.cancel = undefined;
}

function errorTransform(t, error) {
  controllerError(t.readable.controller, error);
  errorWritableAndUnblock(t, error);
}

function errorWritableAndUnblock(t, error) {
  clearAlgorithms(t);
  errorIfNeeded(t.writable.controller, error);
  if (t.backpressure) setBackpressure(t, false);
}

function enqueue(t, chunk) {
  const { controller } = t.readable;
  if (!streams.canCloseOrEnqueue(controller)) throw new TypeError("enqueue: the readable side is closed or errored");
  try {
    controllerEnqueue(controller, chunk);
  } catch (error) {
    errorWritableAndUnblock(t, error);
    throw t.readable.storedError;
  }
  const backpressure = !shouldPull(controller);
  if (backpressure !== t.backpressure) setBackpressure(t, true);
}

function shouldPull(controller) {
  if (!streams.canCloseOrEnqueue(controller) || !controller.started) return false;
  const { reader } = controller.stream;
  return (reader !== null && reader.requests.length > 0) || desiredSize(controller) > 0;
}

function terminate(t) {
  controllerClose(t.readable.controller);
  errorWritableAndUnblock(t, new TypeError("the transform was terminated"));
}

// performTransform runs transform. A failure sets both sides to the error state.
async function performTransform(t, chunk) {
  try {
    await t.transform(chunk);
  } catch (error) {
    errorTransform(t, error);
    throw error;
  }
}

function sinkWrite(t, chunk) {
  return t.backpressure ? whenPulled(t, chunk) : performTransform(t, chunk);
}

async function whenPulled(t, chunk) {
  await t.backpressureChange.promise;
  if (t.writable.state === WRITABLE_ERRORING) throw t.writable.storedError;
  await performTransform(t, chunk);
}

function sinkAbort(t, reason) {
  if (t.finish !== null) return t.finish.promise;
  t.finish = newCapability();
  const { cancel } = t;
  return finishSink(t, cancel(reason), (controller) => { controllerError(controller, reason); });
}

function sinkClose(t) {
  if (t.finish !== null) return t.finish.promise;
  t.finish = newCapability();
  const { flush } = t;
  return finishSink(t, flush(), controllerClose);
}

// finishSink is the common part of abort and close. When done settles, it calls end to end the readable side.
function finishSink(t, done, end) {
  clearAlgorithms(t);
  upon(done, () => {
    if (t.readable.state === streams.ERRORED) t.finish.reject(t.readable.storedError);
    else {
      end(t.readable.controller);
      t.finish.resolve(undefined);
    }
  }, (error) => {
    controllerError(t.readable.controller, error);
    t.finish.reject(error);
  });
  return t.finish.promise;
}

function sourcePull(t) {
  setBackpressure(t, false);
  return t.backpressureChange.promise;
}

function sourceCancel(t, reason) {
  if (t.finish !== null) return t.finish.promise;
  t.finish = newCapability();
  const { cancel } = t;
  const done = cancel(reason);
  clearAlgorithms(t);
  upon(done, () => {
    if (t.writable.state === WRITABLE_ERRORED) t.finish.reject(t.writable.storedError);
    else {
      errorIfNeeded(t.writable.controller, reason);
      unblock(t);
      t.finish.resolve(undefined);
    }
  }, (error) => {
    errorIfNeeded(t.writable.controller, error);
    unblock(t);
    t.finish.reject(error);
  });
  return t.finish.promise;
}

function unblock(t) {
  if (t.backpressure) setBackpressure(t, false);
}

class TransformStreamDefaultController {
  #transform;
  constructor(token = undefined, transform) {
    if (token !== TOKEN) throw illegalConstructor();
    this.#transform = transform;
  }
  get desiredSize() {
    if (!(#transform in this)) throw illegalInvocation("TransformStreamDefaultController");
    return desiredSize(this.#transform.readable.controller);
  }
  enqueue(chunk = undefined) {
    if (!(#transform in this)) throw illegalInvocation("TransformStreamDefaultController");
    enqueue(this.#transform, chunk);
  }
  error(reason = undefined) {
    if (!(#transform in this)) throw illegalInvocation("TransformStreamDefaultController");
    errorTransform(this.#transform, reason);
  }
  terminate() {
    if (!(#transform in this)) throw illegalInvocation("TransformStreamDefaultController");
    terminate(this.#transform);
  }
}
defineInterface(TransformStreamDefaultController, "TransformStreamDefaultController");

// newTransform is "set up" of a TransformStream of the runtime. Its transformer is three functions, which can throw
// or return a promise.
streams.newTransform = (transform, flush, cancel) => {
  const t = new TransformState();
  const one = () => 1;
  initialize(t, resolved(), 1, one, 0, one);
  t.transform = promising(transform);
  t.flush = promising(flush);
  t.cancel = promising(cancel);
  return t;
};

function promising(algorithm) {
  return (value) => {
    try {
      return algorithm(value) ?? resolved();
    } catch (error) {
      return PromiseReject(error);
    }
  };
}

// transformSides returns both states of a TransformStream. newTransferredTransform makes a TransformStream from two
// states, without a transform between them.
internal.transformSides = (value) => stateOf(value);
streams.transformOf = (readable, writable) => {
  const t = new TransformState();
  t.readable = readable;
  t.writable = writable;
  return t;
};
internal.newTransferredTransform = (readable, writable) => new TransformStream(TOKEN, streams.transformOf(readable, writable));
internal.TransformStream = TransformStream;

streams.transformEnqueue = enqueue;
streams.transformReadable = (t) => internal.readableHandle(t.readable);
streams.transformWritable = (t) => internal.writableHandle(t.writable);

// transformRoom returns null when the reader has room for more chunks. Otherwise it returns a promise that settles
// when there is room or the stream has ended.
streams.transformRoom = (t, chunks) =>
  (t.backpressure && desiredSize(t.readable.controller) <= -chunks ? t.backpressureChange.promise : null);

// transformOver reports whether the transform needs no more output.
streams.transformOver = (t) => t.readable.state !== streams.READABLE || t.writable.state === WRITABLE_ERRORING ||
  t.writable.state === WRITABLE_ERRORED;
