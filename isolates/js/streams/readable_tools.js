// streams/readable_tools.js is the features on top of readers: async iteration and ReadableStream.from.

"use strict";

const {
  AsyncIteratorPrototype, ObjectCreate, ObjectDefineProperty, ObjectSetPrototypeOf, PromiseReject, PromiseResolve,
  ReflectApply, StringPrototypeToWellFormed, SymbolAsyncIterator, SymbolIterator, TypeError,
} = primordials;
const { copyBytes, defineTag, illegalInvocation, isBufferSource, isObject, newCapability, readableHandle, resolvedWith, upon } = internal;
const { streams } = internal;
const { encode } = host;
const { ReadRequest, controllerClose, controllerEnqueue, newStream, readerRead, releaseReader, streamCancel } = streams;

// ---- async iteration ----

let iteratorOf;

class AsyncIterator {
  #reader;
  #preventCancel;
  #last = null; // the promise of the latest call
  #underWay = 0; // calls that have not settled
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
  // queue runs calls of next() and return() one after the other. A call runs immediately if no call is before it.
  #queue(step) {
    if (this.#underWay === 0) return (this.#last = step());
    this.#underWay++;
    const answer = newCapability();
    const run = () => {
      this.#underWay--;
      const promise = step();
      upon(PromiseResolve(undefined), () => { upon(promise, answer.resolve, answer.reject); }); // as answer.resolve(promise)
    };
    upon(this.#last, run, run);
    return (this.#last = answer.promise);
  }
  #next() {
    if (this.#finished) return PromiseResolve({ value: undefined, done: true });
    const reader = this.#reader;
    if (reader.stream === undefined) return PromiseReject(new TypeError("the iterator's lock was released"));
    const read = newCapability();
    const answer = newCapability();
    this.#underWay++;
    readerRead(reader, new ReadRequest(
      (value) => { read.resolve({ __proto__: null, value, done: false }); },
      () => {
        releaseReader(reader);
        read.resolve({ __proto__: null, value: undefined, done: true });
      },
      (error) => {
        releaseReader(reader);
        read.reject(error);
      }));
    upon(read.promise, ({ value, done }) => { // a microtask after the read, as Web IDL says
      this.#underWay--;
      this.#finished = done;
      answer.resolve({ value, done });
    }, (error) => {
      this.#underWay--;
      this.#finished = true;
      answer.reject(error);
    });
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
    this.#underWay++;
    const settle = (how, result) => {
      this.#underWay--;
      how(result);
    };
    upon(canceled, () => { settle(answer.resolve, { value, done: true }); }, (error) => { settle(answer.reject, error); });
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

// streamOfIterable makes the stream of a body that gives its pieces one after the other.
internal.streamOfIterable = (iterable) => streams.fromIterable(iterable, toPiece);

function toPiece(value) {
  if (typeof value === "string") return encode(StringPrototypeToWellFormed(value));
  if (isBufferSource(value)) return copyBytes(value);
  throw new TypeError(`a body's async iterable gave ${internal.inspectBrief(value)}: it gives strings and bytes`);
}

streams.fromIterable = (iterable, convert = undefined) => {
  if (iterable === undefined || iterable === null) throw notIterable();
  let method = iterable[SymbolAsyncIterator];
  let sync = false;
  if (method === undefined || method === null) {
    method = iterable[SymbolIterator];
    sync = true;
  }
  if (typeof method !== "function") throw notIterable();
  const iterator = ReflectApply(method, iterable, []);
  if (!isObject(iterator)) throw new TypeError("ReadableStream.from: the iterator is not an object");
  const next = iterator.next;
  const stream = newStream(() => pullNext(stream, iterator, next, sync, convert), (reason) => returnIterator(iterator, reason, sync), 0);
  return readableHandle(stream);
};

function notIterable() {
  return new TypeError("ReadableStream.from: the argument is not iterable");
}

async function pullNext(stream, iterator, next, sync, convert) {
  const step = await resolvedWith(sync ? nextOfSync(iterator, next) : ReflectApply(next, iterator, []));
  if (!isObject(step)) throw notAResult();
  if (step.done) controllerClose(stream.controller);
  else controllerEnqueue(stream.controller, convert === undefined ? step.value : piece(iterator, step.value, convert));
}

// piece converts a value. An iterator of values that are none is closed.
function piece(iterator, value, convert) {
  try {
    return convert(value);
  } catch (error) {
    closeIterator(iterator);
    throw error;
  }
}

// nextOfSync is the next() that ECMAScript makes from the next() of a sync iterator, for code that needs an async
// iterator.
async function nextOfSync(iterator, next) {
  const step = ReflectApply(next, iterator, []);
  if (!isObject(step)) throw notAResult();
  const done = !!step.done;
  const { value } = step;
  try {
    return { __proto__: null, done, value: await value };
  } catch (error) {
    if (!done) closeIterator(iterator);
    throw error;
  }
}

function notAResult() {
  return new TypeError("ReadableStream.from: the iterator gave a result that is not an object");
}

// closeIterator is IteratorClose after an error. Its own errors do not replace the first error.
function closeIterator(iterator) {
  try {
    const method = iterator.return;
    if (method !== undefined && method !== null) ReflectApply(method, iterator, []);
  } catch {
    // the stream has the first error
  }
}

async function returnIterator(iterator, reason, sync) {
  const method = iterator.return;
  if (method === undefined || method === null) return;
  let result = ReflectApply(method, iterator, [reason]);
  if (!sync) result = await resolvedWith(result);
  if (!isObject(result)) throw new TypeError("ReadableStream.from: the iterator's return() gave no object");
  if (!sync) return;
  result.done;
  await result.value;
}
