// node/stream_base.js has what all streams of node:stream have: the class Stream, errors, and how a stream is destroyed.

"use strict";

const { Error, ObjectSetPrototypeOf, ReflectApply, Symbol, TypeError } = primordials;
const { AbortError, builtin, callLater, coded, put } = internal.node;

const EventEmitter = builtin("events");
const kDestroy = Symbol("kDestroy");
const kConstruct = Symbol("kConstruct");

function Stream(options) { ReflectApply(EventEmitter, this, [options]); }
ObjectSetPrototypeOf(Stream.prototype, EventEmitter.prototype);
ObjectSetPrototypeOf(Stream, EventEmitter);

const errors = {
  __proto__: null,
  destroyed: (name) => coded(Error, "ERR_STREAM_DESTROYED", `Cannot call ${name} after a stream was destroyed`),
  afterEnd: () => coded(Error, "ERR_STREAM_WRITE_AFTER_END", "write after end"),
  alreadyFinished: (name) => coded(Error, "ERR_STREAM_ALREADY_FINISHED", `Cannot call ${name} after a stream was finished`),
  pushAfterEof: () => coded(Error, "ERR_STREAM_PUSH_AFTER_EOF", "stream.push() after EOF"),
  unshiftAfterEnd: () => coded(Error, "ERR_STREAM_UNSHIFT_AFTER_END_EVENT", "stream.unshift() after end event"),
  nullValues: () => coded(TypeError, "ERR_STREAM_NULL_VALUES", "May not write null values to stream"),
  multiple: () => coded(Error, "ERR_MULTIPLE_CALLBACK", "Callback called multiple times"),
  notImplemented: (name) => coded(Error, "ERR_METHOD_NOT_IMPLEMENTED", `The ${name} method is not implemented`),
  premature: () => coded(Error, "ERR_STREAM_PREMATURE_CLOSE", "Premature close"),
  notPipeable: () => coded(Error, "ERR_STREAM_CANNOT_PIPE", "Cannot pipe, not readable"),
};

// prepend adds a listener that comes before those of the author.
function prepend(emitter, event, listener) {
  if (typeof emitter.prependListener === "function") emitter.prependListener(event, listener);
  else emitter.on(event, listener);
}

put(Stream.prototype, {
  // the pipe() of streams that are older than Readable
  pipe(target, options) {
    const source = this;
    const onData = (chunk) => {
      if (target.writable && target.write(chunk) === false && source.pause) source.pause();
    };
    const onDrain = () => { if (source.readable && source.resume) source.resume(); };
    let ended = false;
    const onEnd = () => {
      if (ended) return;
      ended = true;
      target.end();
    };
    const onClose = () => {
      if (ended) return;
      ended = true;
      if (typeof target.destroy === "function") target.destroy();
    };
    const onError = function (error) {
      cleanup();
      if (EventEmitter.listenerCount(this, "error") === 0) this.emit("error", error);
    };
    const cleanup = () => {
      source.removeListener("data", onData);
      target.removeListener("drain", onDrain);
      source.removeListener("end", onEnd);
      source.removeListener("close", onClose);
      source.removeListener("error", onError);
      target.removeListener("error", onError);
    };
    source.on("data", onData);
    target.on("drain", onDrain);
    if (!target._isStdio && (!options || options.end !== false)) {
      source.on("end", onEnd);
      source.on("close", onClose);
    }
    prepend(source, "error", onError);
    prepend(target, "error", onError);
    source.on("end", cleanup);
    source.on("close", cleanup);
    target.on("close", cleanup);
    target.emit("pipe", source);
    return target;
  },
});

// ---- destroy ----

function keepError(error, w, r) {
  if (!error) return;
  if (w && !w.errored) w.errored = error;
  if (r && !r.errored) r.errored = error;
}

function emitError(stream, error) {
  const r = stream._readableState;
  const w = stream._writableState;
  if (w?.errorEmitted || r?.errorEmitted) return;
  if (w) w.errorEmitted = true;
  if (r) r.errorEmitted = true;
  stream.emit("error", error);
}

function emitClose(stream) {
  const r = stream._readableState;
  const w = stream._writableState;
  if (w) w.closeEmitted = true;
  if (r) r.closeEmitted = true;
  if (w?.emitClose || r?.emitClose) stream.emit("close");
}

function runDestroy(self, error, callback) {
  let called = false;
  const done = (e) => {
    if (called) return;
    called = true;
    const r = self._readableState;
    const w = self._writableState;
    keepError(e, w, r);
    if (w) w.closed = true;
    if (r) r.closed = true;
    if (typeof callback === "function") callback(e);
    callLater(() => {
      try {
        if (e) emitError(self, e);
      } finally {
        emitClose(self);
      }
    });
  };
  try {
    self._destroy(error || null, done);
  } catch (e) {
    done(e);
  }
}

const destroying = {
  destroy(error, callback) {
    const r = this._readableState;
    const w = this._writableState;
    const s = w || r;
    if (w?.destroyed || r?.destroyed) {
      if (typeof callback === "function") callback();
      return this;
    }
    keepError(error, w, r);
    if (w) w.destroyed = true;
    if (r) r.destroyed = true;
    if (!s.constructed) this.once(kDestroy, (e) => runDestroy(this, error || e, callback));
    else runDestroy(this, error, callback);
    return this;
  },
};

// fail ends a stream by an error: it is destroyed, unless it destroys nothing by itself.
function fail(stream, error, sync) {
  const r = stream._readableState;
  const w = stream._writableState;
  if (w?.destroyed || r?.destroyed) return;
  if (r?.autoDestroy || w?.autoDestroy) stream.destroy(error);
  else if (error) {
    keepError(error, w, r);
    if (sync) callLater(emitError, stream, error);
    else emitError(stream, error);
  }
}

// construct calls _construct() of a stream that has one, before anything is read or written.
function construct(stream, callback) {
  if (typeof stream._construct !== "function") return;
  const r = stream._readableState;
  const w = stream._writableState;
  if (r) r.constructed = false;
  if (w) w.constructed = false;
  stream.once(kConstruct, callback);
  if (stream.listenerCount(kConstruct) > 1) return; // a Duplex: its other half comes first
  callLater(() => {
    let called = false;
    const done = (error) => {
      if (called) {
        fail(stream, error ?? errors.multiple());
        return;
      }
      called = true;
      const s = w || r;
      if (r) r.constructed = true;
      if (w) w.constructed = true;
      if (s.destroyed) stream.emit(kDestroy, error);
      else if (error) fail(stream, error, true);
      else callLater(() => stream.emit(kConstruct));
    };
    try {
      stream._construct((error) => callLater(done, error));
    } catch (error) {
      callLater(done, error);
    }
  });
}

const isNodeStream = (s) => s !== null && typeof s === "object" && (s._readableState || s._writableState ||
  (typeof s.write === "function" && typeof s.on === "function") || (typeof s.pipe === "function" && typeof s.on === "function"));
const isReadableNode = (s) => typeof s?.pipe === "function" && typeof s.on === "function" && (!s._writableState || s._readableState?.readable !== false) &&
  (!s._writableState || s._readableState);
const isWritableNode = (s) => typeof s?.write === "function" && typeof s.on === "function" && (!s._readableState || s._writableState?.writable !== false);

// destroyer destroys what is a stream in any way.
function destroyer(stream, error) {
  if (!stream || stream.destroyed) return;
  if (!error && !stream.readableEnded && !stream.writableFinished) error = new AbortError();
  if (typeof stream.destroy === "function") stream.destroy(error);
  else if (typeof stream.close === "function") stream.close();
}

function addAbortSignal(signal, stream) {
  if (signal === null || typeof signal !== "object" || !("aborted" in signal)) {
    throw internal.node.wrongType("signal", "an instance of AbortSignal", signal);
  }
  if (!isNodeStream(stream)) {
    throw internal.node.wrongType("stream", "an instance of ReadableStream, WritableStream, or Stream", stream);
  }
  const onAbort = () => stream.destroy(new AbortError(undefined, { __proto__: null, cause: signal.reason }));
  if (signal.aborted) onAbort();
  else {
    const { dispose } = Symbol;
    const remove = EventEmitter.addAbortListener(signal, onAbort);
    internal.node.streams.finished(stream, () => remove[dispose ?? primordials.SymbolFor("Symbol.dispose")]());
  }
  return stream;
}

const marks = { __proto__: null, bytes: 65536, objects: 16 };

// markOf is the high water mark that the options of a stream ask for.
function markOf(options, objectMode, key, duplex) {
  const value = options?.highWaterMark ?? (duplex ? options?.[key] : undefined);
  if (value === undefined || value === null) return objectMode ? marks.objects : marks.bytes;
  if (!primordials.NumberIsInteger(value) || value < 0) {
    throw internal.node.wrongValue(duplex && options.highWaterMark === undefined ? `options.${key}` : "options.highWaterMark", value);
  }
  return primordials.MathFloor(value);
}

internal.node.streams = {
  __proto__: null, Stream, addAbortSignal, construct, destroyer, destroying, errors, fail, isNodeStream, isReadableNode, isWritableNode, markOf,
  marks, prepend,
};
