// node/stream_writable.js is Writable of node:stream.

"use strict";

const { FunctionPrototype, ObjectDefineProperty, ObjectSetPrototypeOf, ReflectApply, SymbolHasInstance, TypeError } = primordials;
const { builtin, callLater, coded, wrongType } = internal.node;
const { Stream, addAbortSignal, construct, errors, fail, markOf } = internal.node.streams;
const { Buffer } = builtin("buffer");

const nothing = () => {};

class WritableState {
  constructor(options, stream, duplex) {
    this.objectMode = !!(options?.objectMode || (duplex && options?.writableObjectMode));
    this.highWaterMark = markOf(options, this.objectMode, "writableHighWaterMark", duplex);
    this.length = this.corked = this.writelen = this.pendingcb = this.bufferedIndex = 0;
    this.finalCalled = this.needDrain = this.ending = this.ended = this.finished = false;
    this.destroyed = this.writing = this.bufferProcessing = this.prefinished = false;
    this.errorEmitted = this.closed = this.closeEmitted = false;
    this.constructed = this.sync = this.allBuffers = true;
    this.decodeStrings = options?.decodeStrings !== false;
    this.emitClose = options?.emitClose !== false;
    this.autoDestroy = options?.autoDestroy !== false;
    this.defaultEncoding = options?.defaultEncoding || "utf8";
    this.errored = this.writecb = null;
    this.buffered = [];
    this.onFinish = [];
    this.written = []; // the callbacks of writes that have ended at once, which come together
    this.onwrite = (error) => onwrite(stream, error);
  }
  getBuffer() { return this.buffered.slice(this.bufferedIndex); }
  get bufferedRequestCount() { return this.buffered.length - this.bufferedIndex; }
}

function Writable(options) {
  const isDuplex = this instanceof internal.node.streams.Duplex;
  if (!isDuplex && !ReflectApply(FunctionPrototype[SymbolHasInstance], Writable, [this])) return new Writable(options);
  initWritable(this, options, isDuplex);
  ReflectApply(Stream, this, [options]);
  constructed(this);
  return undefined;
}
ObjectSetPrototypeOf(Writable.prototype, Stream.prototype);
ObjectSetPrototypeOf(Writable, Stream);
ObjectDefineProperty(Writable, SymbolHasInstance, {
  __proto__: null,
  value(object) {
    if (ReflectApply(FunctionPrototype[SymbolHasInstance], this, [object])) return true;
    return this === Writable && !!object && object._writableState instanceof WritableState;
  },
});

function initWritable(stream, options, duplex) {
  stream._events ??= { __proto__: null };
  stream._eventsCount ??= 0;
  stream._writableState = new WritableState(options, stream, duplex);
  if (!options) return;
  if (typeof options.write === "function") stream._write = options.write;
  if (typeof options.writev === "function") stream._writev = options.writev;
  if (typeof options.destroy === "function") stream._destroy = options.destroy;
  if (typeof options.final === "function") stream._final = options.final;
  if (typeof options.construct === "function") stream._construct = options.construct;
  if (options.signal) addAbortSignal(options.signal, stream);
}

function constructed(stream) {
  construct(stream, () => {
    const state = stream._writableState;
    if (!state.writing) clearBuffer(stream, state);
    finishMaybe(stream, state);
  });
}

function write(stream, chunk, encoding, callback) {
  const state = stream._writableState;
  if (typeof encoding === "function") {
    callback = encoding;
    encoding = state.defaultEncoding;
  } else {
    if (!encoding) encoding = state.defaultEncoding;
    else if (encoding !== "buffer" && !Buffer.isEncoding(encoding)) {
      throw coded(TypeError, "ERR_UNKNOWN_ENCODING", `Unknown encoding: ${encoding}`);
    }
    if (typeof callback !== "function") callback = nothing;
  }
  if (chunk === null) throw errors.nullValues();
  if (!state.objectMode) {
    if (typeof chunk === "string") {
      if (state.decodeStrings) {
        chunk = Buffer.from(chunk, encoding);
        encoding = "buffer";
      }
    } else if (Buffer.isBuffer(chunk)) encoding = "buffer";
    else if (primordials.ArrayBufferIsView(chunk)) {
      chunk = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
      encoding = "buffer";
    } else throw wrongType("chunk", "of type string or an instance of Buffer, TypedArray, or DataView", chunk);
  }
  const error = state.ending ? errors.afterEnd() : state.destroyed ? errors.destroyed("write") : undefined;
  if (error) {
    callLater(callback, error);
    fail(stream, error, true);
    return error;
  }
  state.pendingcb++;
  return writeOrKeep(stream, state, chunk, encoding, callback);
}

function writeOrKeep(stream, state, chunk, encoding, callback) {
  const size = state.objectMode ? 1 : chunk.length;
  state.length += size;
  const room = state.length < state.highWaterMark;
  if (!room) state.needDrain = true;
  if (state.writing || state.corked || state.errored || !state.constructed) {
    state.buffered.push({ chunk, encoding, callback });
    if (state.allBuffers && encoding !== "buffer") state.allBuffers = false;
  } else doWrite(stream, state, false, size, chunk, encoding, callback);
  return room && !state.errored && !state.destroyed;
}

function doWrite(stream, state, many, size, chunk, encoding, callback) {
  state.writelen = size;
  state.writecb = callback;
  state.writing = state.sync = true;
  if (state.destroyed) state.onwrite(errors.destroyed("write"));
  else if (many) stream._writev(chunk, state.onwrite);
  else stream._write(chunk, encoding, state.onwrite);
  state.sync = false;
}

function writeFailed(stream, state, error, callback) {
  --state.pendingcb;
  callback(error);
  failBuffered(state);
  fail(stream, error);
}

function onwrite(stream, error) {
  const state = stream._writableState;
  const { sync, writecb } = state;
  if (typeof writecb !== "function") {
    fail(stream, errors.multiple());
    return;
  }
  state.writing = false;
  state.writecb = null;
  state.length -= state.writelen;
  state.writelen = 0;
  if (error) {
    if (!state.errored) state.errored = error;
    if (stream._readableState && !stream._readableState.errored) stream._readableState.errored = error;
    if (sync) callLater(writeFailed, stream, state, error, writecb);
    else writeFailed(stream, state, error, writecb);
    return;
  }
  if (state.buffered.length > state.bufferedIndex) clearBuffer(stream, state);
  if (!sync) {
    afterWrite(stream, state, [writecb]);
    return;
  }
  state.written.push(writecb);
  if (state.written.length > 1) return;
  callLater(() => {
    const { written } = state;
    state.written = [];
    afterWrite(stream, state, written);
  });
}

function afterWrite(stream, state, callbacks) {
  if (!state.ending && !stream.destroyed && state.length === 0 && state.needDrain) {
    state.needDrain = false;
    stream.emit("drain");
  }
  for (let i = 0; i < callbacks.length; i++) {
    state.pendingcb--;
    callbacks[i](null);
  }
  if (state.destroyed) failBuffered(state);
  finishMaybe(stream, state);
}

function failBuffered(state) {
  if (state.writing) return;
  for (let i = state.bufferedIndex; i < state.buffered.length; i++) {
    const { chunk, callback } = state.buffered[i];
    state.length -= state.objectMode ? 1 : chunk.length;
    callback(state.errored ?? errors.destroyed("write"));
  }
  const callbacks = state.onFinish;
  state.onFinish = [];
  for (let i = 0; i < callbacks.length; i++) callbacks[i](state.errored ?? errors.destroyed("end"));
  state.buffered = [];
  state.bufferedIndex = 0;
  state.allBuffers = true;
}

function clearBuffer(stream, state) {
  if (state.corked || state.bufferProcessing || state.destroyed || !state.constructed) return;
  const { buffered } = state;
  let i = state.bufferedIndex;
  const left = buffered.length - i;
  if (left === 0) return;
  state.bufferProcessing = true;
  if (left > 1 && stream._writev) {
    state.pendingcb -= left - 1;
    const chunks = i === 0 ? buffered : buffered.slice(i);
    const callback = (error) => { for (let n = 0; n < chunks.length; n++) chunks[n].callback(error); };
    chunks.allBuffers = state.allBuffers;
    doWrite(stream, state, true, state.length, chunks, "", callback);
    state.buffered = [];
    state.bufferedIndex = 0;
    state.allBuffers = true;
  } else {
    do {
      const { chunk, encoding, callback } = buffered[i];
      buffered[i++] = null;
      doWrite(stream, state, false, state.objectMode ? 1 : chunk.length, chunk, encoding, callback);
    } while (i < buffered.length && !state.writing);
    if (i === buffered.length) {
      state.buffered = [];
      state.bufferedIndex = 0;
    } else if (i > 256) {
      buffered.splice(0, i);
      state.bufferedIndex = 0;
    } else state.bufferedIndex = i;
  }
  state.bufferProcessing = false;
}

function isDone(state) {
  return state.ending && !state.destroyed && state.constructed && state.length === 0 && !state.errored &&
    state.buffered.length === 0 && !state.finished && !state.writing && !state.errorEmitted && !state.closeEmitted;
}

function callFinal(stream, state) {
  let called = false;
  const done = (error) => {
    if (called) {
      fail(stream, error ?? errors.multiple());
      return;
    }
    called = true;
    state.pendingcb--;
    if (error) {
      const callbacks = state.onFinish;
      state.onFinish = [];
      for (let i = 0; i < callbacks.length; i++) callbacks[i](error);
      fail(stream, error, state.sync);
    } else if (isDone(state)) {
      state.prefinished = true;
      stream.emit("prefinish");
      state.pendingcb++;
      callLater(finish, stream, state);
    }
  };
  state.sync = true;
  state.pendingcb++;
  try {
    stream._final(done);
  } catch (error) {
    done(error);
  }
  state.sync = false;
}

function finishMaybe(stream, state, sync) {
  if (!isDone(state)) return;
  if (!state.prefinished && !state.finalCalled) {
    if (typeof stream._final === "function" && !state.destroyed) {
      state.finalCalled = true;
      callFinal(stream, state);
    } else {
      state.prefinished = true;
      stream.emit("prefinish");
    }
  }
  if (state.pendingcb !== 0 || !isDone(state)) return;
  state.pendingcb++;
  if (sync) callLater(() => { if (isDone(state)) finish(stream, state); else state.pendingcb--; });
  else finish(stream, state);
}

function finish(stream, state) {
  state.pendingcb--;
  state.finished = true;
  const callbacks = state.onFinish;
  state.onFinish = [];
  for (let i = 0; i < callbacks.length; i++) callbacks[i](null);
  stream.emit("finish");
  const r = stream._readableState;
  if (state.autoDestroy && (!r || (r.autoDestroy && (r.endEmitted || r.readable === false)))) stream.destroy();
}

internal.node.streams.writable = {
  __proto__: null, Writable, clearBuffer, constructed, failBuffered, finishMaybe, initWritable, write,
};
