// streams/identity.js is IdentityTransformStream and FixedLengthStream of Cloudflare. The bytes that are written on one
// side are read on the other. A write waits until a read wants its bytes.

"use strict";

const {
  MathTrunc, Number, NumberIsFinite, NumberIsNaN, TypeError, WeakMap, WeakMapPrototypeGet, WeakMapPrototypeSet, lengthOf,
  sealedProto,
} = primordials;
const {
  copyBytes, defineInterface, isBufferSource, newCapability, readableState, requireArguments, streams,
} = internal;
const {
  WRITABLE_ERRORING, WritableController, WritableState, errorIfNeeded, highWaterMark, readStrategy, setUpWritable,
} = streams;

const lengths = new WeakMap(); // state of a readable side → how many bytes come

// fixedLengthOf returns how many bytes a stream will give, or -1 if that is not known.
internal.fixedLengthOf = (handle) => {
  const stream = readableState(handle);
  return stream.source === null ? WeakMapPrototypeGet(lengths, stream) ?? -1 : stream.source.length;
};

// setFixedLength says how many bytes a stream of the runtime will give.
internal.setFixedLength = (handle, bytes) => { WeakMapPrototypeSet(lengths, readableState(handle), bytes); };

class Identity {
  expected; // bytes, or -1: any number
  seen = 0;
  writable = new WritableState();
  feed;
  wanted = false; // a read waits for bytes
  waiting = null; // the capability of a write that waits for a read
  constructor(expected, mark) {
    this.expected = expected;
    this.feed = internal.newFeed((reason) => { this.cancel(reason); }, () => { this.pull(); });
    setUpWritable(this.writable, new WritableController(), undefined, (chunk) => this.write(chunk), () => this.close(),
      (reason) => this.abort(reason), mark, undefined);
  }
  async write(chunk) {
    const bytes = this.toBytes(chunk);
    if (lengthOf(bytes) === 0) return;
    if (!this.wanted) {
      this.waiting = newCapability();
      await this.waiting.promise;
    }
    if (this.writable.state === WRITABLE_ERRORING) throw this.writable.storedError;
    this.wanted = false;
    this.feed.push(bytes);
  }
  toBytes(chunk) {
    if (!isBufferSource(chunk)) {
      throw this.fail(typeof chunk === "string" ? "a chunk is a string, not bytes: encode it with TextEncoder"
        : "a chunk is neither an ArrayBuffer nor a view of one");
    }
    const bytes = copyBytes(chunk);
    if (this.expected >= 0 && lengthOf(bytes) > this.expected - this.seen) {
      throw this.fail("Attempt to write too many bytes through a FixedLengthStream.");
    }
    this.seen += lengthOf(bytes);
    return bytes;
  }
  async close() {
    if (this.seen < this.expected) throw this.fail("FixedLengthStream did not see all expected bytes before close().");
    this.feed.close();
  }
  async abort(reason) {
    this.feed.error(reason);
  }
  // fail sets the readable side to the error state. The error that the caller throws does so with the writable side.
  fail(text) {
    const error = new TypeError(text);
    this.feed.error(error);
    return error;
  }
  pull() {
    this.wanted = true;
    this.wake();
  }
  cancel(reason) {
    errorIfNeeded(this.writable.controller, reason);
    this.wake();
  }
  wake() {
    const { waiting } = this;
    this.waiting = null;
    if (waiting !== null) waiting.resolve(undefined);
  }
}
sealedProto(Identity);

// sidesOf returns the state of a TransformStream.
function sidesOf(expected, strategy, what) {
  const identity = new Identity(expected, highWaterMark(readStrategy(strategy, what), 1));
  const readable = readableState(identity.feed.stream);
  if (expected >= 0) WeakMapPrototypeSet(lengths, readable, expected);
  return streams.transformOf(readable, identity.writable);
}

class IdentityTransformStream extends internal.TransformStream {
  constructor(strategy = undefined) {
    if (!streams.hasTransform()) streams.giveTransform(sidesOf(-1, strategy, "new IdentityTransformStream"));
    try {
      super();
    } finally {
      streams.giveTransform(null);
    }
  }
}
defineInterface(IdentityTransformStream, "IdentityTransformStream");

function toLength(value) {
  const n = typeof value === "bigint" ? Number(value) : +value;
  if (NumberIsNaN(n) || !NumberIsFinite(n)) throw new TypeError("new FixedLengthStream: the length is not an integer");
  if (n < 0) throw new TypeError("new FixedLengthStream: the length is below 0");
  if (n >= 9007199254740992) throw new TypeError("new FixedLengthStream: the length is not less than 2^53");
  return MathTrunc(n);
}

class FixedLengthStream extends IdentityTransformStream {
  constructor(expectedLength, strategy = undefined) {
    requireArguments(arguments.length, 1, "new FixedLengthStream");
    streams.giveTransform(sidesOf(toLength(expectedLength), strategy, "new FixedLengthStream"));
    try {
      super();
    } finally {
      streams.giveTransform(null);
    }
  }
}
defineInterface(FixedLengthStream, "FixedLengthStream");
