// streams/readable_bytes.js is the byte stream controller of the Streams standard, with pull-into descriptors for BYOB readers.

"use strict";

const {
  ArrayBuffer, ArrayBufferPrototypeGetByteLength, ArrayBufferPrototypeGetDetached, ArrayBufferPrototypeTransfer,
  MathMin, Queue, RangeError, ReflectConstruct, TypeError, TypedArrayPrototypeGetBuffer, TypedArrayPrototypeSet,
  Uint8Array, sealedProto,
} = primordials;
const { upon } = internal;
const { PullInto, Segment, parts, toView } = internal.pullInto;
const { CLOSED, ERRORED, READABLE, setUp, streamClose, streamError } = internal.streams;

class ByteController {
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
  autoAllocate = 0;
  pending = new Queue();
  request = null; // the ReadableStreamBYOBRequest that handler code holds
  handle = null;
  bytes = true;
  cancelSteps(reason) {
    clearPending(this);
    this.queue.clear();
    this.total = 0;
    const { cancel } = this;
    clearAlgorithms(this);
    return cancel(reason);
  }
  pullSteps(request) {
    if (this.total > 0) {
      request.chunk(takeSegment(this));
      return;
    }
    if (this.autoAllocate > 0) {
      let buffer;
      try {
        buffer = new ArrayBuffer(this.autoAllocate);
      } catch (error) {
        request.error(error);
        return;
      }
      this.pending.push(new PullInto(buffer, 0, this.autoAllocate, 1, 1, Uint8Array, "default"));
    }
    this.stream.reader.requests.push(request);
    callPull(this);
  }
  releaseSteps() {
    if (this.pending.length === 0) return;
    const first = this.pending.peek();
    first.kind = "none";
    this.pending.clear();
    this.pending.push(first);
  }
}
sealedProto(ByteController);

function clearAlgorithms(controller) {
  controller.pull = undefined;
  controller.cancel = undefined;
}

function invalidateRequest(controller) {
  if (controller.request === null) return;
  internal.detachByobRequest(controller.request);
  controller.request = null;
}

function clearPending(controller) {
  invalidateRequest(controller);
  controller.pending.clear();
}

// takeSegment takes the first bytes of the queue for a default read.
function takeSegment(controller) {
  const segment = controller.queue.shift();
  controller.total -= segment.length;
  handleDrain(controller);
  return new Uint8Array(segment.buffer, segment.offset, segment.length);
}

function handleDrain(controller) {
  if (controller.total === 0 && controller.closeRequested) {
    clearAlgorithms(controller);
    streamClose(controller.stream);
  } else callPull(controller);
}

function desiredSize(controller) {
  if (controller.stream.state === ERRORED) return null;
  if (controller.stream.state === CLOSED) return 0;
  return controller.highWaterMark - controller.total;
}

function waitingReads(stream) {
  return stream.reader !== null ? stream.reader.requests.length : 0;
}

function shouldPull(controller) {
  const { stream } = controller;
  if (stream.state !== READABLE || controller.closeRequested || !controller.started) return false;
  return waitingReads(stream) > 0 || desiredSize(controller) > 0;
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
  }, (error) => { byteError(controller, error); });
}

function byteError(controller, error) {
  if (controller.stream.state !== READABLE) return;
  clearPending(controller);
  controller.queue.clear();
  controller.total = 0;
  clearAlgorithms(controller);
  streamError(controller.stream, error);
}

function byteClose(controller) {
  if (controller.closeRequested || controller.stream.state !== READABLE) return;
  if (controller.total > 0) {
    controller.closeRequested = true;
    return;
  }
  const first = controller.pending.peek();
  if (first !== undefined && first.filled % first.elementSize !== 0) {
    const error = new TypeError("the stream was closed within an element of the reader's view");
    byteError(controller, error);
    throw error;
  }
  clearAlgorithms(controller);
  streamClose(controller.stream);
}

function byteEnqueue(controller, view) {
  const { stream } = controller;
  if (controller.closeRequested || stream.state !== READABLE) return;
  const { buffer, length, offset } = parts(view);
  if (ArrayBufferPrototypeGetDetached(buffer)) throw new TypeError("the chunk's buffer is detached");
  const moved = ArrayBufferPrototypeTransfer(buffer);
  const first = controller.pending.peek();
  if (first !== undefined) {
    if (ArrayBufferPrototypeGetDetached(first.buffer)) throw new TypeError("the BYOB request's buffer is detached");
    invalidateRequest(controller);
    first.buffer = ArrayBufferPrototypeTransfer(first.buffer);
    if (first.kind === "none") enqueueDetached(controller, first);
  }
  if (stream.reader !== null && !stream.reader.byob) enqueueForDefault(controller, moved, offset, length);
  else {
    enqueueSegment(controller, moved, offset, length);
    if (stream.reader !== null && stream.reader.byob) commitAll(controller, processPending(controller));
  }
  callPull(controller);
}

function enqueueForDefault(controller, buffer, offset, length) {
  const { requests } = controller.stream.reader;
  while (requests.length > 0 && controller.total > 0) requests.shift().chunk(takeSegment(controller));
  if (requests.length === 0) {
    enqueueSegment(controller, buffer, offset, length);
    return;
  }
  if (controller.pending.length > 0) shiftPending(controller);
  requests.shift().chunk(new Uint8Array(buffer, offset, length));
}

function enqueueSegment(controller, buffer, offset, length) {
  controller.queue.push(new Segment(buffer, offset, length));
  controller.total += length;
}

// enqueueDetached keeps the bytes that are already in the buffer of a released reader.
function enqueueDetached(controller, pull) {
  if (pull.filled > 0) enqueueClone(controller, pull.buffer, pull.offset, pull.filled);
  shiftPending(controller);
}

function enqueueClone(controller, buffer, offset, length) {
  let clone;
  try {
    clone = ArrayBufferPrototypeTransfer(TypedArrayPrototypeGetBuffer(new Uint8Array(new Uint8Array(buffer, offset, length))));
  } catch (error) {
    byteError(controller, error);
    throw error;
  }
  enqueueSegment(controller, clone, 0, length);
}

function shiftPending(controller) {
  return controller.pending.shift();
}

// fillFromQueue copies queued bytes into a descriptor. It returns true when the descriptor has its minimum.
function fillFromQueue(controller, pull) {
  const maxCopy = MathMin(controller.total, pull.length - pull.filled);
  const maxFilled = pull.filled + maxCopy;
  let left = maxCopy;
  let ready = false;
  const aligned = maxFilled - (maxFilled % pull.elementSize);
  if (aligned >= pull.minimum) {
    left = aligned - pull.filled;
    ready = true;
  }
  while (left > 0) {
    const head = controller.queue.peek();
    const n = MathMin(left, head.length);
    TypedArrayPrototypeSet(new Uint8Array(pull.buffer, pull.offset + pull.filled, n), new Uint8Array(head.buffer, head.offset, n));
    if (head.length === n) controller.queue.shift();
    else {
      head.offset += n;
      head.length -= n;
    }
    controller.total -= n;
    pull.filled += n;
    left -= n;
  }
  return ready;
}

function processPending(controller) {
  const ready = new Queue();
  while (controller.pending.length > 0 && controller.total > 0) {
    const pull = controller.pending.peek();
    if (!fillFromQueue(controller, pull)) break;
    shiftPending(controller);
    ready.push(pull);
  }
  return ready;
}

function commitAll(controller, ready) {
  while (ready.length > 0) commit(controller.stream, ready.shift());
}

// commit passes a filled descriptor to the read that waits for it.
function commit(stream, pull) {
  const done = stream.state === CLOSED;
  const view = toView(pull);
  const request = stream.reader.requests.shift();
  if (done) request.close(pull.kind === "default" ? undefined : view);
  else request.chunk(view);
}

// pullInto is a BYOB read.
function pullInto(controller, view, min, request) {
  const { Constructor, buffer, length, offset, size } = parts(view);
  let moved;
  try {
    moved = ArrayBufferPrototypeTransfer(buffer);
  } catch (error) {
    request.error(error);
    return;
  }
  const pull = new PullInto(moved, offset, length, min * size, size, Constructor, "byob");
  const { stream } = controller;
  if (controller.pending.length > 0) {
    controller.pending.push(pull);
    stream.reader.requests.push(request);
    return;
  }
  if (stream.state === CLOSED) {
    request.close(ReflectConstruct(Constructor, [moved, offset, 0]));
    return;
  }
  if (controller.total > 0) {
    if (fillFromQueue(controller, pull)) {
      const filled = toView(pull);
      handleDrain(controller);
      request.chunk(filled);
      return;
    }
    if (controller.closeRequested) {
      const error = new TypeError("the stream ended within an element of the view");
      byteError(controller, error);
      request.error(error);
      return;
    }
  }
  controller.pending.push(pull);
  stream.reader.requests.push(request);
  callPull(controller);
}

// respond handles a source that has written `count` bytes into the first descriptor.
function respond(controller, count) {
  const first = controller.pending.peek();
  if (controller.stream.state === CLOSED) {
    if (count !== 0) throw new TypeError("respond: the stream is closed, so only 0 bytes can be written");
  } else {
    if (count === 0) throw new TypeError("respond: 0 bytes were written but the stream is not closed");
    if (first.filled + count > first.length) throw new RangeError("respond: more bytes than the view holds");
  }
  first.buffer = ArrayBufferPrototypeTransfer(first.buffer);
  respondInternal(controller, count);
}

function respondWithNewView(controller, view) {
  const first = controller.pending.peek();
  const { buffer, length, offset } = parts(view);
  if (controller.stream.state === CLOSED) {
    if (length !== 0) throw new TypeError("respondWithNewView: the stream is closed but the view is not empty");
  } else if (length === 0) throw new TypeError("respondWithNewView: the view is empty but the stream is not closed");
  if (first.offset + first.filled !== offset) throw new RangeError("respondWithNewView: the view begins elsewhere");
  if (first.bufferLength !== ArrayBufferPrototypeGetByteLength(buffer)) {
    throw new RangeError("respondWithNewView: the view's buffer has another size");
  }
  if (first.filled + length > first.length) throw new RangeError("respondWithNewView: the view is too long");
  first.buffer = ArrayBufferPrototypeTransfer(buffer);
  respondInternal(controller, length);
}

function respondInternal(controller, count) {
  const first = controller.pending.peek();
  invalidateRequest(controller);
  if (controller.stream.state === CLOSED) respondClosed(controller, first);
  else respondReadable(controller, count, first);
  callPull(controller);
}

function respondClosed(controller, first) {
  if (first.kind === "none") shiftPending(controller);
  const { reader } = controller.stream;
  if (reader === null || !reader.byob) return;
  const filled = new Queue();
  for (let n = reader.requests.length; n > 0; n--) filled.push(shiftPending(controller));
  commitAll(controller, filled);
}

function respondReadable(controller, count, pull) {
  pull.filled += count;
  if (pull.kind === "none") {
    enqueueDetached(controller, pull);
    commitAll(controller, processPending(controller));
    return;
  }
  if (pull.filled < pull.minimum) return;
  shiftPending(controller);
  const rest = pull.filled % pull.elementSize;
  if (rest > 0) {
    const end = pull.offset + pull.filled;
    enqueueClone(controller, pull.buffer, end - rest, rest);
  }
  pull.filled -= rest;
  const ready = processPending(controller);
  commit(controller.stream, pull);
  commitAll(controller, ready);
}

// setUpBytes connects a byte controller to its stream.
function setUpBytes(stream, start, pull, cancel, highWaterMark, autoAllocate) {
  const controller = new ByteController();
  controller.autoAllocate = autoAllocate;
  setUp(stream, controller, start, pull, cancel, highWaterMark, undefined);
  return controller;
}

internal.byteCallPull = callPull;
internal.byteError = byteError;
primordials.ObjectAssign(internal.streams, {
  ByteController, byteClose, byteEnqueue, byteError, byteDesiredSize: desiredSize, pullInto, respond, respondWithNewView,
  setUpBytes,
});
