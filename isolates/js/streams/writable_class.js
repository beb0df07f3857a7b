// streams/writable_class.js is the public part of writable streams: WritableStream, its writer and its controller.

"use strict";

const { PromiseReject, RangeError, ReflectApply, TypeError } = primordials;
const {
  TOKEN, defineInterface, illegalConstructor, illegalInvocation, isObject, requireArguments, toCallback,
} = internal;
const { streams } = internal;
const {
  WRITABLE, WritableController, WritableState, acquireWriter, closeQueuedOrInFlight, handlerAlgorithm, highWaterMark,
  readStrategy, releaseWriter, setUpWritable, sizeAlgorithm, writableAbort, writableClose, writerDesiredSize,
  writerWrite,
} = streams;

let stateOf;

// given is the state of the next WritableStream, as in streams/transform.js.
let given = null;
streams.giveWritable = (stream) => { given = stream; };

class WritableStream {
  #stream;
  constructor(underlyingSink = undefined, strategy = undefined) {
    if (given !== null) {
      this.#stream = given;
      this.#stream.handle = this;
      given = null;
      return;
    }
    if (underlyingSink === TOKEN) {
      this.#stream = strategy;
      return;
    }
    if (underlyingSink !== undefined && !isObject(underlyingSink)) {
      throw new TypeError("new WritableStream: the sink is not an object");
    }
    const queuing = readStrategy(strategy, "new WritableStream");
    this.#stream = new WritableState();
    this.#stream.handle = this;
    setUpFromSink(this.#stream, underlyingSink, queuing);
  }
  static {
    stateOf = (value) => {
      if (!isObject(value) || !(#stream in value)) throw illegalInvocation("WritableStream");
      return value.#stream;
    };
    internal.isWritableStream = (value) => isObject(value) && #stream in value;
  }
  get locked() { return stateOf(this).writer !== null; }
  abort(reason = undefined) {
    try {
      const stream = stateOf(this);
      if (stream.writer !== null) throw new TypeError("WritableStream.abort: the stream is locked to a writer");
      return writableAbort(stream, reason);
    } catch (error) {
      return PromiseReject(error);
    }
  }
  close() {
    try {
      const stream = stateOf(this);
      if (stream.writer !== null) throw new TypeError("WritableStream.close: the stream is locked to a writer");
      if (closeQueuedOrInFlight(stream)) throw new TypeError("WritableStream.close: the stream is closing already");
      return writableClose(stream);
    } catch (error) {
      return PromiseReject(error);
    }
  }
  getWriter() { return new WritableStreamDefaultWriter(TOKEN, acquireWriter(stateOf(this))); }
}
defineInterface(WritableStream, "WritableStream");

function setUpFromSink(stream, sink, queuing) {
  const dict = sink ?? { __proto__: null, abort: undefined, close: undefined, start: undefined, type: undefined, write: undefined };
  const abort = optionalCallback(dict.abort, "abort");
  const close = optionalCallback(dict.close, "close");
  const start = optionalCallback(dict.start, "start");
  const { type } = dict;
  const write = optionalCallback(dict.write, "write");
  if (type !== undefined) throw new RangeError("new WritableStream: type is not allowed");
  const size = sizeAlgorithm(queuing);
  const mark = highWaterMark(queuing, 1);
  const controller = new WritableController();
  const handle = new WritableStreamDefaultController(TOKEN, controller);
  controller.handle = handle;
  setUpWritable(stream, controller, start === undefined ? undefined : () => ReflectApply(start, sink, [handle]),
    handlerAlgorithm(write, sink, (chunk) => [chunk, handle]), handlerAlgorithm(close, sink, () => []), handlerAlgorithm(abort, sink),
    mark, size);
}

function optionalCallback(value, name) {
  return value === undefined ? undefined : toCallback(value, name);
}

class WritableStreamDefaultWriter {
  #writer;
  constructor(stream, writer = undefined) {
    if (stream === TOKEN) {
      this.#writer = writer;
      return;
    }
    requireArguments(arguments.length, 1, "new WritableStreamDefaultWriter");
    if (!internal.isWritableStream(stream)) {
      throw new TypeError("new WritableStreamDefaultWriter: the argument is not a WritableStream");
    }
    this.#writer = acquireWriter(stateOf(stream));
  }
  get closed() {
    return isObject(this) && #writer in this ? this.#writer.closed.promise
      : PromiseReject(illegalInvocation("WritableStreamDefaultWriter"));
  }
  get desiredSize() {
    if (!(#writer in this)) throw illegalInvocation("WritableStreamDefaultWriter");
    const writer = this.#writer;
    if (writer.stream === undefined) throw new TypeError("desiredSize: the writer was released");
    return writerDesiredSize(writer);
  }
  get ready() {
    return isObject(this) && #writer in this ? this.#writer.ready.promise
      : PromiseReject(illegalInvocation("WritableStreamDefaultWriter"));
  }
  abort(reason = undefined) {
    if (!isObject(this) || !(#writer in this)) return PromiseReject(illegalInvocation("WritableStreamDefaultWriter"));
    const { stream } = this.#writer;
    return stream === undefined ? PromiseReject(new TypeError("abort: the writer was released")) : writableAbort(stream, reason);
  }
  close() {
    if (!isObject(this) || !(#writer in this)) return PromiseReject(illegalInvocation("WritableStreamDefaultWriter"));
    const { stream } = this.#writer;
    if (stream === undefined) return PromiseReject(new TypeError("close: the writer was released"));
    if (closeQueuedOrInFlight(stream)) return PromiseReject(new TypeError("close: the stream is closing already"));
    return writableClose(stream);
  }
  releaseLock() {
    if (!(#writer in this)) throw illegalInvocation("WritableStreamDefaultWriter");
    const writer = this.#writer;
    if (writer.stream !== undefined) releaseWriter(writer);
  }
  write(chunk = undefined) {
    if (!isObject(this) || !(#writer in this)) return PromiseReject(illegalInvocation("WritableStreamDefaultWriter"));
    if (this.#writer.stream === undefined) return PromiseReject(new TypeError("write: the writer was released"));
    return writerWrite(this.#writer, chunk);
  }
}
defineInterface(WritableStreamDefaultWriter, "WritableStreamDefaultWriter");

class WritableStreamDefaultController {
  #controller;
  constructor(token = undefined, controller) {
    if (token !== TOKEN) throw illegalConstructor();
    this.#controller = controller;
  }
  get signal() {
    if (!(#controller in this)) throw illegalInvocation("WritableStreamDefaultController");
    const c = this.#controller;
    if (c.signal === null) {
      c.signal = internal.newSignal();
      if (c.aborted) internal.signalAbort(c.signal, c.abortReason);
    }
    return c.signal;
  }
  error(e = undefined) {
    if (!(#controller in this)) throw illegalInvocation("WritableStreamDefaultController");
    const c = this.#controller;
    if (c.stream.state === WRITABLE) streams.writableControllerError(c, e);
  }
}
defineInterface(WritableStreamDefaultController, "WritableStreamDefaultController");

internal.WritableStream = WritableStream;
internal.writableState = stateOf;
internal.writableHandle = (stream) => (stream.handle ??= new WritableStream(TOKEN, stream));
