// streams/body_streams.js holds the runtime's own functions that make, fill and drain streams of bytes, for bodies.

"use strict";

const {
  List, Map, MapPrototypeDelete, MapPrototypeGet, MapPrototypeSet, RangeError, TypeError, TypedArrayPrototypeGetTag, lengthOf, sealedProto,
} = primordials;
const { concatBytes, markHandled, newCapability, readableHandle, readableState } = internal;
const { streams } = internal;
const { send } = host;
const { FETCH_ABORT, GATHER } = internal.sendOps;
const {
  CLOSED, ERRORED, READABLE, ReadRequest, StreamState, acquireReader, controllerClose, controllerEnqueue, isLocked, newStream,
  readerRead, resolved, setUpBytes, streamCancel,
} = streams;

// newByteStream returns the state of a stream without an underlying source.
function newByteStream(cancel = resolved, pull = resolved) {
  const stream = new StreamState();
  setUpBytes(stream, undefined, pull, cancel, 0, 0);
  return stream;
}

// streamOfBytes makes a stream of one chunk. The stream then owns the bytes.
internal.streamOfBytes = (bytes) => {
  const stream = newByteStream();
  if (lengthOf(bytes) > 0) streams.byteEnqueue(stream.controller, bytes);
  streams.byteClose(stream.controller);
  return readableHandle(stream);
};

// streamOf makes a stream of a body that a binding gave: bytes, or a Kept that Go has.
internal.streamOf = (body) => {
  if (!internal.isKept(body)) return internal.streamOfBytes(body);
  const { run, id, size } = body;
  const feed = internal.newFeed(() => {
    if (run.over) return;
    internal.speakFor(run);
    send(FETCH_ABORT, id);
  }, () => {
    if (run.over) {
      feed.error(new TypeError("the event that got the value is over"));
      return;
    }
    gather(run, readableState(feed.stream), id, Infinity, (bytes) => {
      feed.push(bytes);
      feed.close();
    }, (error) => { feed.error(error); }, false);
  }, new streams.Source(run, id, size));
  return feed.stream;
};

// usedStream returns the stream that body shows after text() or a similar method has read it. It is closed,
// disturbed, and locked by that reader.
internal.usedStream = () => {
  const stream = newByteStream();
  streams.byteClose(stream.controller);
  stream.disturbed = true;
  acquireReader(stream);
  return readableHandle(stream);
};

// newFeed makes a stream that the runtime pushes bytes into. onCancel runs when handler code cancels it. The stream
// calls pull, if given, for each chunk that it wants, and then the runtime must push only on request. source, if given,
// has the bytes in Go, and pushes none before the first pull.
internal.newFeed = (onCancel, pull = undefined, source = null) => {
  let pulled = null;
  const stream = newByteStream((reason) => {
    onCancel(reason);
    return resolved();
  }, pull === undefined ? resolved : () => {
    const { promise } = (pulled = newCapability());
    pull();
    return promise; // pull may have pushed already
  });
  const { controller } = stream;
  stream.source = source;
  const answered = () => {
    if (pulled !== null) pulled.resolve(undefined);
    pulled = null;
  };
  return {
    __proto__: null,
    stream: readableHandle(stream),
    isOpen() { return controller.stream.state === READABLE; }, // also true for a stream that was closed but not read to the end
    push(bytes) {
      if (lengthOf(bytes) > 0) streams.byteEnqueue(controller, bytes);
      answered();
    },
    close() {
      streams.byteClose(controller);
      if (controller.pending.length > 0) streams.respond(controller, 0);
      answered();
    },
    error(error) {
      streams.byteError(controller, error);
      answered();
    },
  };
};

function isUntouched(stream, run) {
  const { source } = stream;
  return source !== null && source.run === run && !run.over && stream.state === READABLE && !stream.disturbed && !isLocked(stream);
}

// takeSource takes the source of a stream that nothing has read, for a run that Go has the source for. The stream is
// locked and disturbed from then on, as if a reader read it. It returns null when the bytes must be read here.
internal.takeSource = (handle, run) => {
  const stream = readableState(handle);
  if (!isUntouched(stream, run)) return null;
  const { source } = stream;
  stream.source = null;
  stream.disturbed = true;
  acquireReader(stream);
  return source;
};

// readOn reads the next chunk for x, which has a reader, a request that takes chunks, and the fields busy and again.
// It is a loop and not a recursion, because queued chunks arrive within the read call.
function readOn(x) {
  if (x.busy) {
    x.again = true;
    return;
  }
  x.busy = true;
  do {
    x.again = false;
    readerRead(x.reader, x.request);
  } while (x.again);
  x.busy = false;
}
internal.readOn = readOn;

// Collector reads a stream to its end.
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
  take(chunk) {
    if (TypedArrayPrototypeGetTag(chunk) !== "Uint8Array") this.stop(new TypeError("a chunk of the body is not a Uint8Array"));
    else if ((this.total += lengthOf(chunk)) > this.limit) {
      this.stop(tooLarge(this.limit));
    } else {
      this.chunks[this.chunks.length] = chunk;
      readOn(this);
    }
  }
  stop(error) {
    markHandled(streamCancel(this.reader.stream, error));
    this.failed(error);
  }
}
sealedProto(Collector);

class Gathering {
  run;
  id;
  kept;
  stream;
  limit;
  done;
  failed;
  constructor(run, id, kept, stream, limit, done, failed) {
    this.run = run;
    this.id = id;
    this.kept = kept;
    this.stream = stream;
    this.limit = limit;
    this.done = done;
    this.failed = failed;
  }
}
sealedProto(Gathering);

const gatherings = new Map(); // id → Gathering: bodies that Go makes one value of

internal.gathered = (id, error, bytes) => {
  const g = MapPrototypeGet(gatherings, id);
  if (g === undefined) return;
  MapPrototypeDelete(gatherings, id);
  if (g.run.over) return;
  internal.startIn(g.run, () => {
    if (error === null) {
      g.done(g.kept ? internal.newKept(g.run, g.id, bytes) : bytes);
      return;
    }
    if (bytes) g.failed(tooLarge(g.limit));
    else g.failed(g.stream.state === ERRORED ? g.stream.storedError : new TypeError(error));
  });
};

internal.onForget((run) => { internal.forgetIn(gatherings, run); });

function tooLarge(limit) {
  return new RangeError(`the body is too large: more than ${limit} bytes`);
}

// gather has Go make one value of a source. done gets its bytes; a Kept if Go keeps them.
function gather(run, stream, source, limit, done, failed, kept) {
  const id = internal.nextRequestId();
  MapPrototypeSet(gatherings, id, new Gathering(run, id, kept, stream, limit, done, failed));
  internal.speakFor(run);
  send(GATHER, id, source, limit === Infinity ? 0 : limit, kept);
}

// readAll passes all bytes of a stream to done, or the error to failed. If kept, bytes that Go has may stay there: then
// done gets a Kept.
internal.readAll = (handle, limit, done, failed, kept = false) => {
  const run = internal.acting();
  const source = run === null ? null : internal.takeSource(handle, run);
  if (source !== null) {
    gather(run, readableState(handle), source.id, limit, done, failed, kept);
    return;
  }
  let collector;
  try {
    collector = new Collector(acquireReader(readableState(handle)), limit, done, failed);
  } catch (error) {
    failed(error);
    return;
  }
  collector.request = new ReadRequest((chunk) => { collector.take(chunk); },
    () => { done(concatBytes(collector.chunks)); }, (error) => { failed(error); });
  readOn(collector);
};

internal.isStreamLocked = (handle) => isLocked(readableState(handle));
internal.isStreamDisturbed = (handle) => readableState(handle).disturbed;
internal.cancelStream = (handle, reason) => streamCancel(readableState(handle), reason);

internal.teeForClone = (handle) => {
  const branches = streams.tee(readableState(handle), true);
  return [readableHandle(branches[0]), readableHandle(branches[1])];
};

// moveSource returns a new stream with the controller and the source of one that nothing has read. The old one is as if
// a reader read it.
function moveSource(old) {
  const stream = new StreamState();
  const { controller } = old;
  stream.controller = controller;
  controller.stream = stream;
  stream.source = old.source;
  old.source = null;
  setUpBytes(old, undefined, resolved, resolved, 0, 0);
  old.disturbed = true;
  acquireReader(old);
  return readableHandle(stream);
}

// proxyStream moves the chunks of a stream to a new stream and locks the old one: "create a proxy".
internal.proxyStream = (handle) => {
  const old = readableState(handle);
  if (isUntouched(old, internal.acting())) return moveSource(old);
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
