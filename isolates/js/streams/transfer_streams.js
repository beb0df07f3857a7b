// streams/transfer_streams.js transfers streams: the "cross-realm transform" of the Streams standard. Messages pipe
// the transferred stream into the copy. Each message is cloned and arrives in a separate task.

"use strict";

const { PromiseReject } = primordials;
const {
  DOMException, markHandled, newCapability, newTransferredTransform, newWire,
  readableHandle, readableState, streams, transformSides, upon, writableHandle, writableState,
} = internal;
const {
  DefaultController, StreamState, WritableController, WritableState, canCloseOrEnqueue, controllerClose, controllerEnqueue,
  controllerError, errorIfNeeded, isLocked, pipeTo, resolved, setUp, setUpWritable,
} = streams;

const CHUNK = 0;
const PULL = 1;
const CLOSE = 2;
const ERROR = 3;

// sendOrError sends a value. If the value cannot be cloned, sendOrError sends the error to the other side and throws
// it.
function sendOrError(wire, kind, value) {
  try {
    wire.send(kind, value);
  } catch (error) {
    try {
      wire.send(ERROR, error);
    } catch {} // the other side gets no message
    throw error;
  }
}

// sendError ends a wire with an error.
function sendError(wire, reason) {
  try {
    sendOrError(wire, ERROR, reason);
  } catch (error) {
    wire.close();
    return PromiseReject(error);
  }
  wire.close();
  return resolved();
}

function setUpReadable(stream, wire) {
  const controller = new DefaultController();
  wire.receive((kind, value) => {
    switch (kind) {
      case CHUNK:
        if (canCloseOrEnqueue(controller)) controllerEnqueue(controller, value);
        return;
      case CLOSE:
        if (canCloseOrEnqueue(controller)) controllerClose(controller);
        break;
      default:
        controllerError(controller, value);
    }
    wire.close();
  });
  setUp(stream, controller, undefined, () => {
    wire.send(PULL, undefined);
    return resolved();
  }, (reason) => sendError(wire, reason), 0, undefined);
}

function setUpWritableEnd(stream, wire) {
  const controller = new WritableController();
  let wanted = newCapability(); // settled when the other side pulls; null when it has
  const pulled = () => {
    if (wanted !== null) wanted.resolve(undefined);
    wanted = null;
  };
  wire.receive((kind, value) => {
    if (kind === ERROR) errorIfNeeded(controller, value);
    pulled();
  });
  const write = (chunk) => {
    const written = newCapability();
    upon(wanted === null ? resolved() : wanted.promise, () => {
      wanted = newCapability();
      try {
        sendOrError(wire, CHUNK, chunk);
        written.resolve(undefined);
      } catch (error) {
        wire.close();
        written.reject(error);
      }
    });
    return written.promise;
  };
  const close = () => {
    wire.send(CLOSE, undefined);
    wire.close();
    return resolved();
  };
  setUpWritable(stream, controller, undefined, write, close, (reason) => sendError(wire, reason), 1, undefined);
}

function isTransferLocked(value) {
  if (internal.isReadableStream(value)) return isLocked(readableState(value));
  if (internal.isWritableStream(value)) return writableState(value).writer !== null;
  const { readable, writable } = transformSides(value);
  return isLocked(readable) || writable.writer !== null;
}

function checkUnlocked(value) {
  if (isTransferLocked(value)) throw new DOMException("a stream to transfer is locked", "DataCloneError");
}

// prepareStream returns the replacement for a stream to transfer. The replacement does nothing before moveStream.
internal.prepareStream = (value) => {
  checkUnlocked(value);
  if (internal.isReadableStream(value)) return readableHandle(new StreamState());
  if (internal.isWritableStream(value)) return writableHandle(new WritableState());
  return newTransferredTransform(new StreamState(), new WritableState());
};

const unhindered = { __proto__: null, preventAbort: false, preventCancel: false, preventClose: false, signal: undefined };

function moveReadable(from, to, home) {
  const { here, there } = newWire(home);
  const writable = new WritableState();
  setUpWritableEnd(writable, here);
  markHandled(pipeTo(from, writable, unhindered));
  setUpReadable(to, there);
}

function moveWritable(from, to, home) {
  const { here, there } = newWire(home);
  const readable = new StreamState();
  setUpReadable(readable, here);
  markHandled(pipeTo(readable, from, unhindered));
  setUpWritableEnd(to, there);
}

// moveStream makes a prepared stream the other end of a stream. home is the Home of the new end, or null.
internal.moveStream = (from, to, home) => {
  checkUnlocked(from); // a getter that ran during the clone can have locked it
  if (internal.isReadableStream(from)) moveReadable(readableState(from), readableState(to), home);
  else if (internal.isWritableStream(from)) moveWritable(writableState(from), writableState(to), home);
  else {
    const old = transformSides(from);
    const made = transformSides(to);
    moveReadable(old.readable, made.readable, home);
    moveWritable(old.writable, made.writable, home);
  }
};
