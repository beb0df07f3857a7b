// 59_body_streams.js holds the runtime's own ways to make, feed and drain streams of bytes, for bodies.

"use strict";

const { List, RangeError, TypeError, TypedArrayPrototypeGetTag, lengthOf, sealedProto } = primordials;
const { concatBytes, markHandled, newCapability, readableHandle, readableState } = internal;
const { streams } = internal;
const {
  CLOSED, READABLE, ReadRequest, StreamState, acquireReader, controllerClose, controllerEnqueue, isLocked, newStream,
  readerRead, resolved, setUpBytes, streamCancel,
} = streams;

// newByteStream gives a state without a source behind it.
function newByteStream(cancel = resolved) {
  const stream = new StreamState();
  setUpBytes(stream, undefined, resolved, cancel, 0, 0);
  return stream;
}

// streamOfBytes makes a stream of one chunk; the bytes become the stream's.
internal.streamOfBytes = (bytes) => {
  const stream = newByteStream();
  if (lengthOf(bytes) > 0) streams.byteEnqueue(stream.controller, bytes);
  streams.byteClose(stream.controller);
  return readableHandle(stream);
};

// usedStream is what body shows when text() or the like has read it: closed and disturbed.
internal.usedStream = () => {
  const stream = newByteStream();
  streams.byteClose(stream.controller);
  stream.disturbed = true;
  return readableHandle(stream);
};

// newFeed makes a stream that the runtime pushes bytes into; onCancel runs when a guest cancels it.
internal.newFeed = (onCancel) => {
  const stream = newByteStream(() => {
    onCancel();
    return resolved();
  });
  const { controller } = stream;
  return {
    __proto__: null,
    stream: readableHandle(stream),
    push(bytes) { if (lengthOf(bytes) > 0) streams.byteEnqueue(controller, bytes); },
    close() {
      streams.byteClose(controller);
      if (controller.pending.length > 0) streams.respond(controller, 0);
    },
    error(error) { streams.byteError(controller, error); },
  };
};

// newPulled makes a stream of bytes that asks for each chunk by calling pull, and is given it by push.
internal.newPulled = (pull, onCancel) => {
  let pulled = null;
  const stream = new StreamState();
  setUpBytes(stream, undefined, () => {
    pulled = newCapability();
    pull();
    return pulled.promise;
  }, () => {
    onCancel();
    return resolved();
  }, 0, 0);
  const { controller } = stream;
  const settle = () => {
    if (pulled !== null) pulled.resolve(undefined);
    pulled = null;
  };
  return {
    __proto__: null,
    stream: readableHandle(stream),
    push(bytes) {
      if (lengthOf(bytes) > 0) streams.byteEnqueue(controller, bytes);
      settle();
    },
    close() {
      streams.byteClose(controller);
      if (controller.pending.length > 0) streams.respond(controller, 0);
      settle();
    },
    error(error) {
      streams.byteError(controller, error);
      settle();
    },
  };
};

// Collector reads a stream to its end. A loop, not recursion: queued chunks arrive within the read call.
class Collector {
  reader;
  limit;
  done;
  failed;
  chunks = new List();
  total = 0;
  busy = false;
  again = false;
  request = null;
  constructor(reader, limit, done, failed) {
    this.reader = reader;
    this.limit = limit;
    this.done = done;
    this.failed = failed;
  }
  read() {
    if (this.busy) {
      this.again = true;
      return;
    }
    this.busy = true;
    do {
      this.again = false;
      readerRead(this.reader, this.request);
    } while (this.again);
    this.busy = false;
  }
  take(chunk) {
    if (TypedArrayPrototypeGetTag(chunk) !== "Uint8Array") this.stop(new TypeError("a chunk of the body is not a Uint8Array"));
    else if ((this.total += lengthOf(chunk)) > this.limit) {
      this.stop(new RangeError(`the body is too large: more than ${this.limit} bytes`));
    } else {
      this.chunks[this.chunks.length] = chunk;
      this.read();
    }
  }
  stop(error) {
    markHandled(streamCancel(this.reader.stream, error));
    this.failed(error);
  }
}
sealedProto(Collector);

// readAll gives all bytes of a stream to done, or the reason why not to failed.
internal.readAll = (handle, limit, done, failed) => {
  let collector;
  try {
    collector = new Collector(acquireReader(readableState(handle)), limit, done, failed);
  } catch (error) {
    failed(error);
    return;
  }
  collector.request = new ReadRequest((chunk) => { collector.take(chunk); },
    () => { done(concatBytes(collector.chunks)); }, (error) => { failed(error); });
  collector.read();
};

internal.isStreamLocked = (handle) => isLocked(readableState(handle));
internal.isStreamDisturbed = (handle) => readableState(handle).disturbed;
internal.cancelStream = (handle, reason) => streamCancel(readableState(handle), reason);

internal.teeForClone = (handle) => {
  const branches = streams.tee(readableState(handle), true);
  return [readableHandle(branches[0]), readableHandle(branches[1])];
};

// proxyStream moves a stream's chunks to a new one and locks the old: "create a proxy".
internal.proxyStream = (handle) => {
  const reader = acquireReader(readableState(handle));
  reader.stream.disturbed = true;
  const stream = newStream(() => {
    const pulled = newCapability();
    readerRead(reader, new ReadRequest(
      (value) => {
        controllerEnqueue(stream.controller, value);
        pulled.resolve(undefined);
      },
      () => {
        controllerClose(stream.controller);
        pulled.resolve(undefined);
      },
      (error) => { pulled.reject(error); }));
    return pulled.promise;
  }, (reason) => streamCancel(reader.stream, reason), 0);
  return readableHandle(stream);
};

internal.addInspector(internal.isReadableStream, (value) => {
  const stream = readableState(value);
  const state = stream.state === READABLE ? "readable" : stream.state === CLOSED ? "closed" : "errored";
  return ["locked", isLocked(stream), "state", state];
});
