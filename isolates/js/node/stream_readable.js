// node/stream_readable.js is Readable of node:stream.

"use strict";

const { NumberIsInteger, NumberIsNaN, NumberParseInt, ObjectSetPrototypeOf, ReflectApply } = primordials;
const { builtin, callLater, wrongType } = internal.node;
const { Stream, addAbortSignal, construct, errors, fail, markOf } = internal.node.streams;
const { Buffer } = builtin("buffer");

class ReadableState {
  constructor(options, stream, duplex) {
    this.objectMode = !!(options?.objectMode || (duplex && options?.readableObjectMode));
    this.highWaterMark = markOf(options, this.objectMode, "readableHighWaterMark", duplex);
    this.buffer = [];
    this.first = 0; // index of the first chunk that is not taken
    this.length = 0;
    this.pipes = [];
    this.flowing = null;
    this.ended = this.endEmitted = this.reading = false;
    this.constructed = this.sync = true;
    this.needReadable = this.emittedReadable = this.readableListening = this.resumeScheduled = false;
    this.errorEmitted = this.destroyed = this.closed = this.closeEmitted = false;
    this.emitClose = options?.emitClose !== false;
    this.autoDestroy = options?.autoDestroy !== false;
    this.errored = null;
    this.defaultEncoding = options?.defaultEncoding || "utf8";
    this.awaiting = new primordials.Set(); // writers that have not drained
    this.readingMore = this.dataEmitted = false;
    this.readable = true;
    this.decoder = this.encoding = null;
    if (options?.encoding) setDecoder(this, options.encoding);
  }
}

function setDecoder(state, encoding) {
  const { StringDecoder } = builtin("string_decoder");
  state.decoder = new StringDecoder(encoding);
  state.encoding = state.decoder.encoding;
}

function Readable(options) {
  if (!(this instanceof Readable)) return new Readable(options);
  initReadable(this, options, false);
  ReflectApply(Stream, this, [options]);
  constructed(this);
  return undefined;
}
ObjectSetPrototypeOf(Readable.prototype, Stream.prototype);
ObjectSetPrototypeOf(Readable, Stream);

function initReadable(stream, options, duplex) {
  stream._events ??= { __proto__: null };
  stream._eventsCount ??= 0;
  stream._readableState = new ReadableState(options, stream, duplex);
  if (!options) return;
  if (typeof options.read === "function") stream._read = options.read;
  if (typeof options.destroy === "function") stream._destroy = options.destroy;
  if (typeof options.construct === "function") stream._construct = options.construct;
  if (options.signal && !duplex) addAbortSignal(options.signal, stream);
}

function constructed(stream) {
  construct(stream, () => { if (stream._readableState.needReadable) maybeReadMore(stream, stream._readableState); });
}

// ---- what comes in ----

function bytesOf(state, chunk, encoding, front) {
  if (typeof chunk === "string") {
    encoding ||= state.defaultEncoding;
    if (state.encoding === encoding) return chunk;
    const bytes = Buffer.from(chunk, encoding);
    return front && state.encoding ? bytes.toString(state.encoding) : bytes;
  }
  if (Buffer.isBuffer(chunk)) return chunk;
  if (primordials.ArrayBufferIsView(chunk)) return Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
  if (chunk === undefined || chunk === null) return chunk;
  throw wrongType("chunk", "of type string or an instance of Buffer, TypedArray, or DataView", chunk);
}

function take(stream, chunk, encoding, front) {
  const state = stream._readableState;
  if (!state.objectMode) {
    try {
      chunk = bytesOf(state, chunk, encoding, front);
    } catch (error) {
      fail(stream, error);
      return false;
    }
  }
  if (chunk === null) {
    state.reading = false;
    ended(stream, state);
  } else if (state.objectMode || chunk?.length > 0) {
    if (front) {
      if (state.endEmitted) fail(stream, errors.unshiftAfterEnd());
      else if (state.destroyed || state.errored) return false;
      else keep(stream, state, chunk, true);
    } else if (state.ended) fail(stream, errors.pushAfterEof());
    else if (state.destroyed || state.errored) return false;
    else {
      state.reading = false;
      if (state.decoder && typeof chunk !== "string") chunk = state.decoder.write(chunk);
      if (state.objectMode || chunk.length !== 0) keep(stream, state, chunk, false);
      else maybeReadMore(stream, state);
    }
  } else if (!front) {
    state.reading = false;
    maybeReadMore(stream, state);
  }
  return !state.ended && (state.length < state.highWaterMark || state.length === 0);
}

function keep(stream, state, chunk, front) {
  if (state.flowing && state.length === 0 && !state.sync && stream.listenerCount("data") > 0) {
    state.awaiting.clear();
    state.dataEmitted = true;
    stream.emit("data", chunk);
  } else {
    state.length += state.objectMode ? 1 : chunk.length;
    if (!front) state.buffer.push(chunk);
    else if (state.first > 0) state.buffer[--state.first] = chunk;
    else state.buffer.unshift(chunk);
    if (state.needReadable) emitReadable(stream);
  }
  maybeReadMore(stream, state);
}

function ended(stream, state) {
  if (state.ended) return;
  if (state.decoder) {
    const rest = state.decoder.end();
    if (rest.length > 0) {
      state.buffer.push(rest);
      state.length += state.objectMode ? 1 : rest.length;
    }
  }
  state.ended = true;
  if (state.sync) emitReadable(stream);
  else {
    state.needReadable = false;
    state.emittedReadable = true;
    emitReadableNow(stream);
  }
}

function maybeReadMore(stream, state) {
  if (state.readingMore || !state.constructed) return;
  state.readingMore = true;
  callLater(() => {
    while (!state.reading && !state.ended && (state.length < state.highWaterMark || (state.flowing && state.length === 0))) {
      const { length } = state;
      stream.read(0);
      if (length === state.length) break;
    }
    state.readingMore = false;
  });
}

function emitReadable(stream) {
  const state = stream._readableState;
  state.needReadable = false;
  if (state.emittedReadable) return;
  state.emittedReadable = true;
  callLater(emitReadableNow, stream);
}

function emitReadableNow(stream) {
  const state = stream._readableState;
  if (!state.destroyed && !state.errored && (state.length || state.ended)) {
    stream.emit("readable");
    state.emittedReadable = false;
  }
  state.needReadable = !state.flowing && !state.ended && state.length <= state.highWaterMark;
  flow(stream);
}

// ---- what goes out ----

function howMuch(n, state) {
  if (n <= 0 || (state.length === 0 && state.ended)) return 0;
  if (state.objectMode) return 1;
  if (NumberIsNaN(n)) return state.flowing && state.length ? state.buffer[state.first].length : state.length;
  if (n <= state.length) return n;
  return state.ended ? state.length : 0;
}

function shift(state) {
  const chunk = state.buffer[state.first];
  state.buffer[state.first++] = undefined;
  if (state.first > 1024 || state.first === state.buffer.length) {
    state.buffer = state.buffer.slice(state.first);
    state.first = 0;
  }
  return chunk;
}

function fromBuffer(n, state) {
  if (state.length === 0) return null;
  if (state.objectMode) return shift(state);
  const parts = [];
  let left = !n || n >= state.length ? state.length : n;
  while (left > 0) {
    const chunk = state.buffer[state.first];
    if (chunk.length <= left) {
      parts.push(shift(state));
      left -= chunk.length;
    } else {
      parts.push(chunk.slice(0, left));
      state.buffer[state.first] = chunk.slice(left);
      left = 0;
    }
  }
  if (parts.length === 1) return parts[0];
  return state.decoder ? parts.join("") : Buffer.concat(parts);
}

function endReadable(stream) {
  const state = stream._readableState;
  if (state.endEmitted) return;
  state.ended = true;
  callLater(() => {
    if (state.errored || state.closeEmitted || state.endEmitted || state.length !== 0) return;
    state.endEmitted = true;
    stream.emit("end");
    const w = stream._writableState;
    if (w && stream.writable && stream.allowHalfOpen === false) callLater(() => { if (stream.writable && !w.ended && !stream.destroyed) stream.end(); });
    else if (state.autoDestroy && (!w || (w.autoDestroy && (w.finished || w.writable === false)))) stream.destroy();
  });
}

function flow(stream) {
  const state = stream._readableState;
  while (state.flowing && stream.read() !== null);
}

function resume(stream, state) {
  if (state.resumeScheduled) return;
  state.resumeScheduled = true;
  callLater(() => {
    if (!state.reading) stream.read(0);
    state.resumeScheduled = false;
    stream.emit("resume");
    flow(stream);
    if (state.flowing && !state.reading) stream.read(0);
  });
}

function listening(stream) {
  const state = stream._readableState;
  state.readableListening = stream.listenerCount("readable") > 0;
  if (state.resumeScheduled && state.paused !== true) state.flowing = true;
  else if (stream.listenerCount("data") > 0) stream.resume();
  else if (!state.readableListening) state.flowing = null;
}

function read(stream, n) {
  const state = stream._readableState;
  if (n === undefined) n = NaN;
  else if (!NumberIsInteger(n)) n = NumberParseInt(n, 10);
  const asked = n;
  if (n > state.highWaterMark) state.highWaterMark = n;
  if (n !== 0) state.emittedReadable = false;
  if (n === 0 && state.needReadable &&
    ((state.highWaterMark !== 0 ? state.length >= state.highWaterMark : state.length > 0) || state.ended)) {
    if (state.length === 0 && state.ended) endReadable(stream);
    else emitReadable(stream);
    return null;
  }
  n = howMuch(n, state);
  if (n === 0 && state.ended) {
    if (state.length === 0) endReadable(stream);
    return null;
  }
  const wanted = state.needReadable || state.length === 0 || state.length - n < state.highWaterMark;
  if (wanted && !(state.ended || state.reading || state.destroyed || state.errored || !state.constructed)) {
    state.reading = state.sync = true;
    if (state.length === 0) state.needReadable = true;
    try {
      stream._read(state.highWaterMark);
    } catch (error) {
      fail(stream, error);
    }
    state.sync = false;
    if (!state.reading) n = howMuch(asked, state);
  }
  const out = n > 0 ? fromBuffer(n, state) : null;
  if (out === null) {
    state.needReadable = state.length <= state.highWaterMark;
    n = 0;
  } else {
    state.length -= state.objectMode ? 1 : n;
    state.awaiting.clear();
  }
  if (state.length === 0) {
    if (!state.ended) state.needReadable = true;
    if (asked !== n && state.ended) endReadable(stream);
  }
  if (out !== null && !state.errorEmitted && !state.closeEmitted) {
    state.dataEmitted = true;
    stream.emit("data", out);
  }
  return out;
}

internal.node.streams.readable = {
  __proto__: null, Readable, constructed, initReadable, listening, read, resume, setDecoder, take,
};
