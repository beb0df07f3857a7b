// streams/readable_class.js is the public part of readable streams: ReadableStream, its readers and controllers.

"use strict";

const {
  ArrayBufferPrototypeGetByteLength, ArrayBufferPrototypeGetDetached, PromiseReject, RangeError, ReflectApply,
  SymbolAsyncIterator, TypeError,
} = primordials;
const {
  TOKEN, copyMembers, defineAlias, defineInterface, illegalConstructor, illegalInvocation, isObject, isView, newCapability, requireArguments,
  toCallback, toDictionary, toEnum, toUnsignedLongLong,
} = internal;
const { streams } = internal;
const viewParts = internal.pullInto.parts;
const {
  DefaultController, ERRORED, READABLE, ReadRequest, StreamState, acquireReader, handlerAlgorithm, highWaterMark,
  isLocked, newReader, readStrategy, readerRead, releaseReader, setUp, sizeAlgorithm, streamCancel,
} = streams;

let stateOf;

class ReadableStream {
  #stream;
  constructor(underlyingSource = undefined, strategy = undefined) {
    if (underlyingSource === TOKEN) {
      this.#stream = strategy;
      return;
    }
    if (underlyingSource !== undefined && !isObject(underlyingSource)) {
      throw new TypeError("new ReadableStream: the source is not an object");
    }
    const queuing = readStrategy(strategy, "new ReadableStream");
    this.#stream = new StreamState();
    this.#stream.handle = this;
    setUpFromSource(this.#stream, underlyingSource, queuing);
  }
  static {
    stateOf = (value) => {
      if (!isObject(value) || !(#stream in value)) throw illegalInvocation("ReadableStream");
      return value.#stream;
    };
    internal.isReadableStream = (value) => isObject(value) && #stream in value;
  }
  static from(asyncIterable) {
    requireArguments(arguments.length, 1, "ReadableStream.from");
    return streams.fromIterable(asyncIterable);
  }
  get locked() { return isLocked(stateOf(this)); }
  cancel(reason = undefined) {
    try {
      const stream = stateOf(this);
      if (isLocked(stream)) throw new TypeError("ReadableStream.cancel: the stream is locked to a reader");
      return streamCancel(stream, reason);
    } catch (error) {
      return PromiseReject(error);
    }
  }
  getReader(options = undefined) {
    const stream = stateOf(this);
    const init = toDictionary(options, "getReader: the options");
    const mode = init === undefined ? undefined : init.mode;
    if (mode === undefined) return new ReadableStreamDefaultReader(TOKEN, acquireReader(stream));
    toEnum(mode, ["byob"], "getReader: mode");
    return new ReadableStreamBYOBReader(TOKEN, acquireByobReader(stream));
  }
  pipeThrough(transform, options = undefined) {
    const stream = stateOf(this);
    requireArguments(arguments.length, 1, "ReadableStream.pipeThrough");
    const pair = toDictionary(transform, "pipeThrough: the transform");
    const readable = pair?.readable;
    if (!internal.isReadableStream(readable)) throw new TypeError("pipeThrough: readable is not a ReadableStream");
    const writable = pair.writable;
    if (!internal.isWritableStream(writable)) throw new TypeError("pipeThrough: writable is not a WritableStream");
    const settings = streams.readPipeOptions(options);
    const target = internal.writableState(writable);
    if (isLocked(stream)) throw new TypeError("pipeThrough: the readable stream is locked");
    if (target.writer !== null) throw new TypeError("pipeThrough: the writable stream is locked");
    internal.markHandled(streams.pipeTo(stream, target, settings));
    return readable;
  }
  pipeTo(destination, options = undefined) {
    try {
      const stream = stateOf(this);
      requireArguments(arguments.length, 1, "ReadableStream.pipeTo");
      if (!internal.isWritableStream(destination)) throw new TypeError("pipeTo: the destination is not a WritableStream");
      const settings = streams.readPipeOptions(options);
      const target = internal.writableState(destination);
      if (isLocked(stream)) throw new TypeError("pipeTo: the readable stream is locked");
      if (target.writer !== null) throw new TypeError("pipeTo: the writable stream is locked");
      return streams.pipeTo(stream, target, settings);
    } catch (error) {
      return PromiseReject(error);
    }
  }
  tee() {
    const branches = streams.tee(stateOf(this), false);
    return [handleOf(branches[0]), handleOf(branches[1])];
  }
  values(options = undefined) {
    const stream = stateOf(this);
    const preventCancel = !!toDictionary(options, "values: the options")?.preventCancel;
    return newIterator(acquireReader(stream), preventCancel);
  }
}
defineInterface(ReadableStream, "ReadableStream");
defineAlias(ReadableStream.prototype, SymbolAsyncIterator, ReadableStream.prototype.values);

// handleOf returns the ReadableStream of a state. It makes the ReadableStream on the first call.
function handleOf(stream) {
  return (stream.handle ??= new ReadableStream(TOKEN, stream));
}

function acquireByobReader(stream) {
  if (isLocked(stream)) throw new TypeError("the stream is locked to a reader already");
  if (!stream.controller.bytes) throw new TypeError("getReader: the stream is not a byte stream");
  return newReader(stream, true);
}

// setUpFromSource reads the members of the underlying source in order of their names and makes the matching
// controller.
function setUpFromSource(stream, source, queuing) {
  const dict = source ?? { __proto__: null, autoAllocateChunkSize: undefined, cancel: undefined, pull: undefined,
    start: undefined, type: undefined };
  const given = dict.autoAllocateChunkSize;
  const autoAllocate = given === undefined ? undefined : toUnsignedLongLong(given, "enforce", "autoAllocateChunkSize");
  const cancel = optionalCallback(dict.cancel, "cancel");
  const pull = optionalCallback(dict.pull, "pull");
  const start = optionalCallback(dict.start, "start");
  const { type } = dict;
  const bytes = type !== undefined && toEnum(type, ["bytes"], "new ReadableStream: type") === "bytes";
  if (bytes && queuing.size !== undefined) throw new RangeError("new ReadableStream: a byte stream's strategy cannot have a size");
  const mark = highWaterMark(queuing, bytes ? 0 : 1);
  if (bytes && autoAllocate === 0) throw new TypeError("autoAllocateChunkSize cannot be 0");
  const controller = bytes ? new streams.ByteController() : new DefaultController();
  const handle = bytes ? new ReadableByteStreamController(TOKEN, controller)
    : new ReadableStreamDefaultController(TOKEN, controller);
  controller.handle = handle;
  if (bytes) controller.autoAllocate = autoAllocate ?? 0;
  const starter = start === undefined ? undefined : () => ReflectApply(start, source, [handle]);
  setUp(stream, controller, starter, handlerAlgorithm(pull, source, () => [handle]), handlerAlgorithm(cancel, source), mark,
    bytes ? undefined : sizeAlgorithm(queuing));
}

function optionalCallback(value, name) {
  return value === undefined ? undefined : toCallback(value, name);
}

// ---- readers ----

// readPromise returns the promise of read() for {value, done}. begin gets the request.
function readPromise(begin) {
  const answer = newCapability();
  begin(new ReadRequest(
    (value) => { answer.resolve({ value, done: false }); },
    (value) => { answer.resolve({ value, done: true }); },
    (error) => { answer.reject(error); }));
  return answer.promise;
}

function readerMembers(Class, readerOf) {
  const members = {
    get closed() {
      try {
        return readerOf(this).closed.promise;
      } catch (error) {
        return PromiseReject(error);
      }
    },
    cancel(reason = undefined) {
      try {
        const { stream } = readerOf(this);
        if (stream === undefined) throw new TypeError("cancel: the reader was released");
        return streamCancel(stream, reason);
      } catch (error) {
        return PromiseReject(error);
      }
    },
    releaseLock() {
      const reader = readerOf(this);
      if (reader.stream !== undefined) releaseReader(reader);
    },
  };
  copyMembers(Class, members);
}

class ReadableStreamDefaultReader {
  #reader;
  constructor(stream, reader = undefined) {
    if (stream === TOKEN) {
      this.#reader = reader;
      return;
    }
    requireArguments(arguments.length, 1, "new ReadableStreamDefaultReader");
    if (!internal.isReadableStream(stream)) {
      throw new TypeError("new ReadableStreamDefaultReader: the argument is not a ReadableStream");
    }
    this.#reader = acquireReader(stateOf(stream));
  }
  static {
    readerMembers(this, (value) => {
      if (!isObject(value) || !(#reader in value)) throw illegalInvocation("ReadableStreamDefaultReader");
      return value.#reader;
    });
  }
  read() {
    if (!isObject(this) || !(#reader in this)) return PromiseReject(illegalInvocation("ReadableStreamDefaultReader"));
    const reader = this.#reader;
    if (reader.stream === undefined) return PromiseReject(new TypeError("read: the reader was released"));
    return readPromise((request) => { readerRead(reader, request); });
  }
}
defineInterface(ReadableStreamDefaultReader, "ReadableStreamDefaultReader");

class ReadableStreamBYOBReader {
  #reader;
  constructor(stream, reader = undefined) {
    if (stream === TOKEN) {
      this.#reader = reader;
      return;
    }
    requireArguments(arguments.length, 1, "new ReadableStreamBYOBReader");
    if (!internal.isReadableStream(stream)) {
      throw new TypeError("new ReadableStreamBYOBReader: the argument is not a ReadableStream");
    }
    this.#reader = acquireByobReader(stateOf(stream));
  }
  static {
    readerMembers(this, (value) => {
      if (!isObject(value) || !(#reader in value)) throw illegalInvocation("ReadableStreamBYOBReader");
      return value.#reader;
    });
  }
  read(view, options = undefined) {
    try {
      if (!(#reader in this)) throw illegalInvocation("ReadableStreamBYOBReader");
      requireArguments(arguments.length, 1, "read");
      if (!isView(view)) throw new TypeError("read: the argument is not a view");
      const min = toDictionary(options, "read: the options")?.min;
      return readInto(this.#reader, view, min === undefined ? 1 : toUnsignedLongLong(min, "enforce", "read: min"));
    } catch (error) {
      return PromiseReject(error);
    }
  }
}
defineInterface(ReadableStreamBYOBReader, "ReadableStreamBYOBReader");

function readInto(reader, view, min) {
  const { buffer, length, size } = viewParts(view);
  if (length === 0) throw new TypeError("read: the view is empty");
  if (ArrayBufferPrototypeGetByteLength(buffer) === 0) throw new TypeError("read: the view's buffer is empty");
  if (ArrayBufferPrototypeGetDetached(buffer)) throw new TypeError("read: the view's buffer is detached");
  if (min === 0) throw new TypeError("read: min cannot be 0");
  if (min > length / size) throw new RangeError("read: min is more than the view holds");
  const { stream } = reader;
  if (stream === undefined) throw new TypeError("read: the reader was released");
  return readPromise((request) => {
    stream.disturbed = true;
    if (stream.state === ERRORED) request.error(stream.storedError);
    else streams.pullInto(stream.controller, view, min, request);
  });
}

// ---- controllers ----

class ReadableStreamDefaultController {
  #controller;
  constructor(token = undefined, controller) {
    if (token !== TOKEN) throw illegalConstructor();
    this.#controller = controller;
  }
  get desiredSize() {
    if (!(#controller in this)) throw illegalInvocation("ReadableStreamDefaultController");
    return streams.desiredSize(this.#controller);
  }
  close() {
    if (!(#controller in this)) throw illegalInvocation("ReadableStreamDefaultController");
    if (!streams.canCloseOrEnqueue(this.#controller)) throw new TypeError("close: the stream is closed or errored already");
    streams.controllerClose(this.#controller);
  }
  enqueue(chunk = undefined) {
    if (!(#controller in this)) throw illegalInvocation("ReadableStreamDefaultController");
    if (!streams.canCloseOrEnqueue(this.#controller)) throw new TypeError("enqueue: the stream is closed or errored");
    streams.controllerEnqueue(this.#controller, chunk);
  }
  error(reason = undefined) {
    if (!(#controller in this)) throw illegalInvocation("ReadableStreamDefaultController");
    streams.controllerError(this.#controller, reason);
  }
}
defineInterface(ReadableStreamDefaultController, "ReadableStreamDefaultController");

class ReadableStreamBYOBRequest {
  #controller;
  #view;
  constructor(token = undefined, controller, view) {
    if (token !== TOKEN) throw illegalConstructor();
    this.#controller = controller;
    this.#view = view;
  }
  static {
    internal.detachByobRequest = (request) => {
      request.#controller = null;
      request.#view = null;
    };
  }
  get view() {
    if (!(#controller in this)) throw illegalInvocation("ReadableStreamBYOBRequest");
    return this.#view;
  }
  respond(bytesWritten) {
    if (!(#controller in this)) throw illegalInvocation("ReadableStreamBYOBRequest");
    requireArguments(arguments.length, 1, "respond");
    const count = toUnsignedLongLong(bytesWritten, "enforce", "respond: the argument");
    if (this.#controller === null) throw new TypeError("respond: this request was answered already");
    if (ArrayBufferPrototypeGetDetached(viewParts(this.#view).buffer)) {
      throw new TypeError("respond: the view's buffer is detached");
    }
    streams.respond(this.#controller, count);
  }
  respondWithNewView(view) {
    if (!(#controller in this)) throw illegalInvocation("ReadableStreamBYOBRequest");
    requireArguments(arguments.length, 1, "respondWithNewView");
    if (!isView(view)) throw new TypeError("respondWithNewView: the argument is not a view");
    if (this.#controller === null) throw new TypeError("respondWithNewView: this request was answered already");
    if (ArrayBufferPrototypeGetDetached(viewParts(view).buffer)) {
      throw new TypeError("respondWithNewView: the view's buffer is detached");
    }
    streams.respondWithNewView(this.#controller, view);
  }
}
defineInterface(ReadableStreamBYOBRequest, "ReadableStreamBYOBRequest");

class ReadableByteStreamController {
  #controller;
  constructor(token = undefined, controller) {
    if (token !== TOKEN) throw illegalConstructor();
    this.#controller = controller;
  }
  get byobRequest() {
    if (!(#controller in this)) throw illegalInvocation("ReadableByteStreamController");
    const c = this.#controller;
    if (c.request === null && c.pending.length > 0) {
      const first = c.pending.peek();
      const view = new primordials.Uint8Array(first.buffer, first.offset + first.filled, first.length - first.filled);
      c.request = new ReadableStreamBYOBRequest(TOKEN, c, view);
    }
    return c.request;
  }
  get desiredSize() {
    if (!(#controller in this)) throw illegalInvocation("ReadableByteStreamController");
    return streams.byteDesiredSize(this.#controller);
  }
  close() {
    if (!(#controller in this)) throw illegalInvocation("ReadableByteStreamController");
    const c = this.#controller;
    if (c.closeRequested || c.stream.state !== READABLE) throw new TypeError("close: the stream is closed or errored already");
    streams.byteClose(c);
  }
  enqueue(chunk) {
    if (!(#controller in this)) throw illegalInvocation("ReadableByteStreamController");
    requireArguments(arguments.length, 1, "enqueue");
    if (!isView(chunk)) throw new TypeError("enqueue: the chunk is not a view");
    const { buffer, length } = viewParts(chunk);
    if (length === 0 || ArrayBufferPrototypeGetByteLength(buffer) === 0) throw new TypeError("enqueue: the chunk is empty");
    const c = this.#controller;
    if (c.closeRequested || c.stream.state !== READABLE) throw new TypeError("enqueue: the stream is closed or errored");
    streams.byteEnqueue(c, chunk);
  }
  error(reason = undefined) {
    if (!(#controller in this)) throw illegalInvocation("ReadableByteStreamController");
    streams.byteError(this.#controller, reason);
  }
}
defineInterface(ReadableByteStreamController, "ReadableByteStreamController");

internal.readableState = stateOf;
internal.readableHandle = handleOf;
let newIterator;
internal.setReadableIterator = (make) => { newIterator = make; };
