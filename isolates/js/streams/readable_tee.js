// streams/readable_tee.js is tee: of streams with a default controller, and of byte streams. The branches of a byte
// stream pass the buffers of their own readers to the source.

"use strict";

const { Uint8Array, sealedProto } = primordials;
const { follow, newCapability, noop, upon } = internal;
const { streams } = internal;
const {
  ReadRequest, StreamState, acquireReader, byteClose, byteEnqueue, byteError, controllerClose, controllerEnqueue, controllerError,
  newReader, newStream, readerRead, releaseReader, resolved, setUpBytes, streamCancel,
} = streams;

// Branch is one of the two streams of a tee.
class Branch {
  stream = null;
  canceled = false;
  reason = undefined;
  again = false; // a pull came during a read
}
sealedProto(Branch);

class Tee {
  stream;
  reader;
  reading = false;
  one = new Branch();
  two = new Branch();
  done = newCapability(); // the capability of both branches' cancel()
  clone;
  constructor(stream, clone) {
    this.stream = stream;
    this.reader = acquireReader(stream);
    this.clone = clone;
    internal.markHandled(this.done.promise);
  }
  cancel(branch, reason) {
    branch.canceled = true;
    branch.reason = reason;
    const { one, two } = this;
    if (one.canceled && two.canceled) follow(this.done, streamCancel(this.stream, [one.reason, two.reason]));
    return this.done.promise;
  }
  // over settles the cancel() of a branch when the source will not settle it.
  over() {
    if (!this.one.canceled || !this.two.canceled) this.done.resolve(undefined);
  }
  // fail ends a tee whose chunk cannot be cloned.
  fail(error, failBranch) {
    failBranch(this.one.stream.controller, error);
    failBranch(this.two.stream.controller, error);
    follow(this.done, streamCancel(this.stream, error));
  }
}
sealedProto(Tee);

// tee returns two states. With clone, the second branch gets structured clones, as the clone of a body does.
streams.tee = (stream, clone) => {
  const t = new Tee(stream, clone);
  const { one, two } = t;
  if (stream.controller.bytes) {
    one.stream = byteBranch(t, one);
    two.stream = byteBranch(t, two);
    forwardError(t);
  } else {
    const pull = () => pullBoth(t);
    one.stream = newStream(pull, (reason) => t.cancel(one, reason), 1);
    two.stream = newStream(pull, (reason) => t.cancel(two, reason), 1);
    upon(t.reader.closed.promise, noop, (error) => {
      controllerError(one.stream.controller, error);
      controllerError(two.stream.controller, error);
      t.over();
    });
  }
  return [one.stream, two.stream];
};

// ---- default streams ----

function pullBoth(t) {
  if (t.reading) {
    t.one.again = true;
    return resolved();
  }
  t.reading = true;
  readerRead(t.reader, new ReadRequest(
    (value) => { internal.queueMicrotask(() => giveBoth(t, value)); },
    () => {
      t.reading = false;
      if (!t.one.canceled) controllerClose(t.one.stream.controller);
      if (!t.two.canceled) controllerClose(t.two.stream.controller);
      t.over();
    },
    () => { t.reading = false; }));
  return resolved();
}

function giveBoth(t, value) {
  const { one, two } = t;
  one.again = false;
  let second = value;
  if (!one.canceled && !two.canceled && t.clone) {
    try {
      second = internal.structuredClone(value);
    } catch (error) {
      t.fail(error, controllerError);
      return;
    }
  }
  if (!one.canceled) controllerEnqueue(one.stream.controller, value);
  if (!two.canceled) controllerEnqueue(two.stream.controller, second);
  t.reading = false;
  if (one.again) pullBoth(t);
}

// ---- byte streams ----

function byteBranch(t, branch) {
  const stream = new StreamState();
  setUpBytes(stream, undefined, () => pullBranch(t, branch), (reason) => t.cancel(branch, reason), 0, 0);
  return stream;
}

// forwardError passes an error of the source to the branches, if this reader is still the current one.
function forwardError(t) {
  const { reader } = t;
  upon(reader.closed.promise, noop, (error) => {
    if (t.reader !== reader) return;
    byteError(t.one.stream.controller, error);
    byteError(t.two.stream.controller, error);
    t.over();
  });
}

// changeReader makes sure that the tee reads the source with a reader of this kind.
function changeReader(t, byob) {
  if (t.reader.byob === byob) return;
  releaseReader(t.reader);
  t.reader = newReader(t.stream, byob);
  forwardError(t);
}

function pullBranch(t, branch) {
  if (t.reading) {
    branch.again = true;
    return resolved();
  }
  t.reading = true;
  const first = branch.stream.controller.pending.peek();
  if (first === undefined) pullDefault(t);
  else pullByob(t, branch, new Uint8Array(first.buffer, first.offset + first.filled, first.length - first.filled));
  return resolved();
}

function pullDefault(t) {
  changeReader(t, false);
  readerRead(t.reader, new ReadRequest(
    (chunk) => { internal.queueMicrotask(() => giveBytes(t, chunk)); },
    () => {
      t.reading = false;
      closeBranch(t.one);
      closeBranch(t.two);
      answerPending(t.one);
      answerPending(t.two);
      t.over();
    },
    () => { t.reading = false; }));
}

function giveBytes(t, chunk) {
  const { one, two } = t;
  one.again = two.again = false;
  let second = chunk;
  if (!one.canceled && !two.canceled) {
    try {
      second = new Uint8Array(chunk);
    } catch (error) {
      t.fail(error, byteError);
      return;
    }
  }
  if (!one.canceled) byteEnqueue(one.stream.controller, chunk);
  if (!two.canceled) byteEnqueue(two.stream.controller, second);
  goOn(t);
}

// pullByob reads into the buffer from the reader of a branch. The other branch gets a copy.
function pullByob(t, branch, view) {
  const other = branch === t.one ? t.two : t.one;
  changeReader(t, true);
  const request = new ReadRequest(
    (chunk) => { internal.queueMicrotask(() => giveView(t, branch, other, chunk)); },
    (chunk) => {
      t.reading = false;
      closeBranch(branch);
      closeBranch(other);
      if (chunk !== undefined) {
        const { controller } = branch.stream;
        if (!branch.canceled && controller.pending.length > 0) streams.respondWithNewView(controller, chunk);
        if (!other.canceled) answerPending(other);
      }
      t.over();
    },
    () => { t.reading = false; });
  t.stream.disturbed = true;
  if (t.stream.state === streams.ERRORED) request.error(t.stream.storedError);
  else streams.pullInto(t.stream.controller, view, 1, request);
}

function giveView(t, branch, other, chunk) {
  t.one.again = t.two.again = false;
  let copy;
  if (!other.canceled) {
    try {
      copy = new Uint8Array(chunk);
    } catch (error) {
      t.fail(error, byteError);
      return;
    }
  }
  if (!branch.canceled) streams.respondWithNewView(branch.stream.controller, chunk);
  if (!other.canceled) byteEnqueue(other.stream.controller, copy);
  goOn(t);
}

function goOn(t) {
  t.reading = false;
  if (t.one.again) pullBranch(t, t.one);
  else if (t.two.again) pullBranch(t, t.two);
}

// closeBranch closes a branch. A branch whose reader waits for the rest of an element fails, and the source does not
// see that error.
function closeBranch(branch) {
  if (branch.canceled) return;
  try {
    byteClose(branch.stream.controller);
  } catch {
    // the branch has the error
  }
}

function answerPending(branch) {
  const { controller } = branch.stream;
  if (controller.pending.length > 0) streams.respond(controller, 0);
}
