// streams/writable_state.js holds the state of writable streams, their writers and controllers. streams/writable.js
// changes it.

"use strict";

const { Queue, sealedProto } = primordials;
const { markHandled, newCapability } = internal;

const WRITABLE = 0;
const ERRORING = 1;
const ERRORED = 2;
const CLOSED = 3;
const CLOSE = { __proto__: null }; // the queue entry for close()

class WritableState {
  state = WRITABLE;
  storedError = undefined;
  writer = null;
  controller = null;
  writes = new Queue(); // the capabilities of the write() calls in the queue
  inFlightWrite = null;
  closeRequest = null;
  inFlightClose = null;
  pendingAbort = null;
  backpressure = false;
  handle = null;
}
sealedProto(WritableState);

class PendingAbort {
  capability = newCapability();
  reason;
  wasErroring;
  constructor(reason, wasErroring) {
    this.reason = reason;
    this.wasErroring = wasErroring;
  }
}
sealedProto(PendingAbort);

class WriterState {
  stream;
  ready;
  readyPending = false;
  closed;
  closedPending = false;
}
sealedProto(WriterState);

class WritableController {
  stream;
  queue = new Queue();
  total = 0;
  started = false;
  highWaterMark;
  size;
  write;
  close;
  abort;
  signal = null; // made on the first access
  aborted = false;
  abortReason = undefined;
  handle = null;
}
sealedProto(WritableController);

class Entry {
  value;
  size;
  constructor(value, size) {
    this.value = value;
    this.size = size;
  }
}
sealedProto(Entry);

function settledCapability(rejected, error) {
  const c = newCapability();
  if (!rejected) c.resolve(undefined);
  else {
    c.reject(error);
    markHandled(c.promise);
  }
  return c;
}

internal.writableParts = {
  __proto__: null, CLOSE, CLOSED, ERRORED, ERRORING, Entry, PendingAbort, WRITABLE, WritableController, WritableState, WriterState,
  settledCapability,
};
