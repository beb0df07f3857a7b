// 54_readable_tools.js is what is built on readers: async iteration, ReadableStream.from and tee.

"use strict";

const {
  AsyncIteratorPrototype, ObjectCreate, ObjectDefineProperty, ObjectSetPrototypeOf, PromiseReject, PromiseResolve,
  ReflectApply, SymbolAsyncIterator, SymbolIterator, TypeError, Uint8Array, sealedProto,
} = primordials;
const { defineTag, follow, illegalInvocation, isObject, newCapability, noop, readableHandle, upon } = internal;
const { streams } = internal;
const {
  ReadRequest, StreamState, acquireReader, controllerClose, controllerEnqueue, controllerError, newStream, readerRead,
  releaseReader, resolved, setUpBytes, streamCancel,
} = streams;

// ---- async iteration ----

let iteratorOf;

class AsyncIterator {
  #reader;
  #preventCancel;
  #ongoing = null;
  #finished = false;
  constructor(reader, preventCancel) {
    this.#reader = reader;
    this.#preventCancel = preventCancel;
  }
  static {
    iteratorOf = (value) => {
      if (!isObject(value) || !(#reader in value)) throw illegalInvocation("ReadableStream AsyncIterator");
      return value;
    };
  }
  static next(self) {
    return self.#queue(() => self.#next());
  }
  static return(self, value) {
    return self.#queue(() => self.#return(value));
  }
  // queue runs calls of next() and return() one after the other.
  #queue(step) {
    const before = this.#ongoing;
    if (before === null) return (this.#ongoing = step());
    const answer = newCapability();
    const run = () => { upon(step(), answer.resolve, answer.reject); };
    upon(before, run, run);
    return (this.#ongoing = answer.promise);
  }
  #next() {
    if (this.#finished) return PromiseResolve({ value: undefined, done: true });
    const reader = this.#reader;
    if (reader.stream === undefined) return PromiseReject(new TypeError("the iterator's lock was released"));
    const answer = newCapability();
    readerRead(reader, new ReadRequest(
      (value) => { answer.resolve({ value, done: false }); },
      () => {
        this.#finished = true;
        releaseReader(reader);
        answer.resolve({ value: undefined, done: true });
      },
      (error) => {
        this.#finished = true;
        releaseReader(reader);
        answer.reject(error);
      }));
    return answer.promise;
  }
  #return(value) {
    if (this.#finished) return PromiseResolve({ value, done: true });
    this.#finished = true;
    const reader = this.#reader;
    if (reader.stream === undefined) return PromiseResolve({ value, done: true });
    if (this.#preventCancel) {
      releaseReader(reader);
      return PromiseResolve({ value, done: true });
    }
    const canceled = streamCancel(reader.stream, value);
    releaseReader(reader);
    const answer = newCapability();
    upon(canceled, () => { answer.resolve({ value, done: true }); }, (error) => { answer.reject(error); });
    return answer.promise;
  }
}

const { next: iteratorNext, return: iteratorReturn } = AsyncIterator;
const iteratorProto = ObjectCreate(AsyncIteratorPrototype);
const iteratorMembers = {
  next() {
    try {
      return iteratorNext(iteratorOf(this));
    } catch (error) {
      return PromiseReject(error);
    }
  },
  return(value) {
    try {
      return iteratorReturn(iteratorOf(this), value);
    } catch (error) {
      return PromiseReject(error);
    }
  },
};
ObjectDefineProperty(iteratorProto, "next",
  { __proto__: null, value: iteratorMembers.next, writable: true, enumerable: true, configurable: true });
ObjectDefineProperty(iteratorProto, "return",
  { __proto__: null, value: iteratorMembers.return, writable: true, enumerable: true, configurable: true });
defineTag(iteratorProto, "ReadableStream AsyncIterator");
internal.setReadableIterator((reader, preventCancel) =>
  ObjectSetPrototypeOf(new AsyncIterator(reader, preventCancel), iteratorProto));

// ---- ReadableStream.from ----

streams.fromIterable = (iterable) => {
  if (!isObject(iterable) && typeof iterable !== "string") throw new TypeError("ReadableStream.from: the argument is not iterable");
  let method = iterable[SymbolAsyncIterator];
  let sync = false;
  if (method === undefined || method === null) {
    method = iterable[SymbolIterator];
    sync = true;
  }
  if (typeof method !== "function") throw new TypeError("ReadableStream.from: the argument is not iterable");
  const iterator = ReflectApply(method, iterable, []);
  if (!isObject(iterator)) throw new TypeError("ReadableStream.from: the iterator is not an object");
  const next = iterator.next;
  const stream = newStream(() => pullNext(stream, iterator, next, sync), (reason) => returnIterator(iterator, reason, sync), 0);
  return readableHandle(stream);
};

async function pullNext(stream, iterator, next, sync) {
  let step = ReflectApply(next, iterator, []);
  if (!sync) step = await step;
  if (!isObject(step)) throw new TypeError("ReadableStream.from: the iterator gave a result that is not an object");
  if (step.done) {
    controllerClose(stream.controller);
    return;
  }
  const value = sync ? await step.value : step.value;
  controllerEnqueue(stream.controller, value);
}

async function returnIterator(iterator, reason, sync) {
  const method = iterator.return;
  if (method === undefined || method === null) return;
  let result = ReflectApply(method, iterator, [reason]);
  if (!sync) result = await result;
  if (!isObject(result)) throw new TypeError("ReadableStream.from: the iterator's return() gave no object");
}

// ---- tee ----

class Tee {
  reader;
  reading = false;
  again = false;
  canceled1 = false;
  canceled2 = false;
  reason1 = undefined;
  reason2 = undefined;
  branch1 = null;
  branch2 = null;
  done = newCapability();
  bytes;
  clone;
  constructor(reader, bytes, clone) {
    this.reader = reader;
    this.bytes = bytes;
    this.clone = clone;
    internal.markHandled(this.done.promise);
  }
}
sealedProto(Tee);

// tee gives two states. With clone, the second branch gets structured clones, as cloning a body does.
streams.tee = (stream, clone) => {
  const t = new Tee(acquireReader(stream), stream.controller.bytes, clone);
  const pull = () => pullTee(t);
  const cancel1 = (reason) => cancelTee(t, stream, 1, reason);
  const cancel2 = (reason) => cancelTee(t, stream, 2, reason);
  if (t.bytes) {
    t.branch1 = new StreamState();
    t.branch2 = new StreamState();
    setUpBytes(t.branch1, undefined, pull, cancel1, 0, 0);
    setUpBytes(t.branch2, undefined, pull, cancel2, 0, 0);
  } else {
    t.branch1 = newStream(pull, cancel1, 1);
    t.branch2 = newStream(pull, cancel2, 1);
  }
  upon(t.reader.closed.promise, noop, (error) => {
    failBranch(t, t.branch1, error);
    failBranch(t, t.branch2, error);
    if (!t.canceled1 || !t.canceled2) t.done.resolve(undefined);
  });
  return [t.branch1, t.branch2];
};

function failBranch(t, branch, error) {
  if (t.bytes) streams.byteError(branch.controller, error);
  else controllerError(branch.controller, error);
}

function pullTee(t) {
  if (t.reading) {
    t.again = true;
    return resolved();
  }
  t.reading = true;
  readerRead(t.reader, new ReadRequest(
    (value) => { internal.queueMicrotask(() => teeChunk(t, value)); },
    () => {
      t.reading = false;
      closeBranch(t, t.branch1, t.canceled1);
      closeBranch(t, t.branch2, t.canceled2);
      if (!t.canceled1 || !t.canceled2) t.done.resolve(undefined);
    },
    () => { t.reading = false; }));
  return resolved();
}

function teeChunk(t, value) {
  t.again = false;
  let second = value;
  if (!t.canceled1 && !t.canceled2 && (t.bytes || t.clone)) {
    try {
      second = t.bytes ? new Uint8Array(value) : internal.structuredClone(value);
    } catch (error) {
      failBranch(t, t.branch1, error);
      failBranch(t, t.branch2, error);
      follow(t.done, streamCancel(t.reader.stream, error));
      return;
    }
  }
  if (!t.canceled1) enqueueBranch(t, t.branch1, value);
  if (!t.canceled2) enqueueBranch(t, t.branch2, second);
  t.reading = false;
  if (t.again) pullTee(t);
}

function enqueueBranch(t, branch, value) {
  if (t.bytes) streams.byteEnqueue(branch.controller, value);
  else controllerEnqueue(branch.controller, value);
}

function closeBranch(t, branch, canceled) {
  if (!t.bytes) {
    if (!canceled) controllerClose(branch.controller);
    return;
  }
  if (!canceled) streams.byteClose(branch.controller);
  if (branch.controller.pending.length > 0) streams.respond(branch.controller, 0);
}

function cancelTee(t, stream, which, reason) {
  if (which === 1) {
    t.canceled1 = true;
    t.reason1 = reason;
  } else {
    t.canceled2 = true;
    t.reason2 = reason;
  }
  if (t.canceled1 && t.canceled2) follow(t.done, streamCancel(stream, [t.reason1, t.reason2]));
  return t.done.promise;
}
