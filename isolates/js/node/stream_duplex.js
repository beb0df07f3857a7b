// node/stream_duplex.js has the methods of Writable, and Duplex, Transform and PassThrough of node:stream.

"use strict";

const {
  ObjectSetPrototypeOf, Promise, ReflectApply, ReflectGetOwnPropertyDescriptor, ReflectDefineProperty, ReflectOwnKeys, Symbol,
} = primordials;
const { AbortError, builtin, callLater, coded, put } = internal.node;
const { Stream, destroying, errors, fail } = internal.node.streams;
const { Readable, constructed: readableConstructed, initReadable } = internal.node.streams.readable;
const { Writable, clearBuffer, constructed: writableConstructed, failBuffered, finishMaybe, initWritable, write } = internal.node.streams.writable;
const { Buffer } = builtin("buffer");
const EventEmitter = builtin("events");

const asyncDispose = Symbol.asyncDispose ?? primordials.SymbolFor("Symbol.asyncDispose");

const methods = {
  pipe() { fail(this, errors.notPipeable()); },
  write(chunk, encoding, callback) { return write(this, chunk, encoding, callback) === true; },
  _write(chunk, encoding, callback) {
    if (!this._writev) throw errors.notImplemented("_write()");
    this._writev([{ chunk, encoding }], callback);
  },
  cork() { this._writableState.corked++; },
  uncork() {
    const state = this._writableState;
    if (!state.corked) return;
    state.corked--;
    if (!state.writing) clearBuffer(this, state);
  },
  setDefaultEncoding(encoding) {
    if (typeof encoding === "string") encoding = primordials.StringPrototypeToLowerCase(encoding);
    if (!Buffer.isEncoding(encoding)) throw coded(primordials.TypeError, "ERR_UNKNOWN_ENCODING", `Unknown encoding: ${encoding}`);
    this._writableState.defaultEncoding = encoding;
    return this;
  },
  end(chunk, encoding, callback) {
    const state = this._writableState;
    if (typeof chunk === "function") {
      callback = chunk;
      chunk = encoding = null;
    } else if (typeof encoding === "function") {
      callback = encoding;
      encoding = null;
    }
    let error;
    if (chunk !== null && chunk !== undefined) {
      const result = write(this, chunk, encoding);
      if (result instanceof primordials.Error) error = result;
    }
    if (state.corked) {
      state.corked = 1;
      this.uncork();
    }
    if (error === undefined && !state.errored && !state.ending) {
      state.ending = true;
      finishMaybe(this, state, true);
      state.ended = true;
    } else if (error === undefined) {
      if (state.finished) error = errors.alreadyFinished("end");
      else if (state.destroyed) error = errors.destroyed("end");
    }
    if (typeof callback !== "function") return this;
    if (error) callLater(callback, error);
    else if (state.errored) callLater(callback, state.errored);
    else if (state.finished) callLater(callback);
    else state.onFinish.push(callback);
    return this;
  },
  destroy(error, callback) {
    const state = this._writableState;
    if (!state.destroyed && (state.bufferedIndex < state.buffered.length || state.onFinish.length)) callLater(failBuffered, state);
    ReflectApply(destroying.destroy, this, [error, callback]);
    return this;
  },
  _destroy(error, callback) { callback(error); },
  _undestroy() {},
  [EventEmitter.captureRejectionSymbol](error) { this.destroy(error); },
  [asyncDispose]() {
    let error;
    if (!this.destroyed) {
      error = this.writableFinished ? null : new AbortError();
      this.destroy(error);
    }
    return new Promise((resolve, reject) => {
      internal.node.streams.finished(this, (e) => (e && e.name !== "AbortError" ? reject(e) : resolve(null)));
    });
  },
};
put(Writable.prototype, methods);

const getters = {
  get closed() { return this._writableState ? this._writableState.closed : false; },
  get destroyed() { return this._writableState ? this._writableState.destroyed : false; },
  set destroyed(value) { if (this._writableState) this._writableState.destroyed = value; },
  get errored() { return this._writableState ? this._writableState.errored : null; },
  get writable() {
    const w = this._writableState;
    return !!w && w.writable !== false && !w.destroyed && !w.errored && !w.ending && !w.ended;
  },
  set writable(value) { if (this._writableState) this._writableState.writable = !!value; },
  get writableFinished() { return this._writableState ? this._writableState.finished : false; },
  get writableObjectMode() { return this._writableState ? this._writableState.objectMode : false; },
  get writableBuffer() { return this._writableState?.getBuffer(); },
  get writableEnded() { return this._writableState ? this._writableState.ending : false; },
  get writableNeedDrain() { const w = this._writableState; return !!w && !w.destroyed && !w.ending && w.needDrain; },
  get writableHighWaterMark() { return this._writableState?.highWaterMark; },
  get writableCorked() { return this._writableState ? this._writableState.corked : 0; },
  get writableLength() { return this._writableState?.length; },
  get writableAborted() { const w = this._writableState; return !!(w.writable !== false && (w.destroyed || w.errored) && !w.finished); },
};
put(Writable.prototype, getters, false);

// ---- Duplex ----

function Duplex(options) {
  if (!(this instanceof Duplex)) return new Duplex(options);
  initReadable(this, options, true);
  initWritable(this, options, true);
  this.allowHalfOpen = options?.allowHalfOpen !== false;
  if (options?.readable === false) {
    const r = this._readableState;
    r.readable = false;
    r.ended = r.endEmitted = true;
  }
  if (options?.writable === false) {
    const w = this._writableState;
    w.writable = false;
    w.ending = w.ended = w.finished = true;
  }
  ReflectApply(Stream, this, [options]);
  readableConstructed(this);
  writableConstructed(this);
  return undefined;
}
ObjectSetPrototypeOf(Duplex.prototype, Readable.prototype);
ObjectSetPrototypeOf(Duplex, Readable);
internal.node.streams.Duplex = Duplex;

// What Writable has and Readable has not.
function mix(source, enumerable) {
  const keys = ReflectOwnKeys(source);
  for (let i = 0; i < keys.length; i++) {
    const key = keys[i];
    if (key === "pipe" || key === "_destroy" || key === "_undestroy" || key === "closed" || key === "errored" || typeof key === "symbol") continue;
    const d = ReflectGetOwnPropertyDescriptor(source, key);
    d.enumerable = enumerable;
    ObjectSetPrototypeOf(d, null);
    ReflectDefineProperty(Duplex.prototype, key, d);
  }
}
mix(methods, true);
mix(getters, false);
put(Duplex.prototype, {
  get destroyed() {
    const r = this._readableState;
    const w = this._writableState;
    return r === undefined || w === undefined ? false : r.destroyed && w.destroyed;
  },
  set destroyed(value) {
    if (!this._readableState || !this._writableState) return;
    this._readableState.destroyed = this._writableState.destroyed = value;
  },
}, false);

// ---- Transform ----

const kCallback = Symbol("kCallback");

function Transform(options) {
  if (!(this instanceof Transform)) return new Transform(options);
  const mark = options?.readableHighWaterMark ?? null;
  if (mark === 0) {
    options = { ...options, highWaterMark: null, readableHighWaterMark: mark, writableHighWaterMark: options.writableHighWaterMark || 0 };
  }
  ReflectApply(Duplex, this, [options]);
  this._readableState.sync = false;
  this[kCallback] = null;
  if (options) {
    if (typeof options.transform === "function") this._transform = options.transform;
    if (typeof options.flush === "function") this._flush = options.flush;
  }
  this.on("prefinish", function () { if (this._final !== final) ReflectApply(final, this, []); });
  return undefined;
}
ObjectSetPrototypeOf(Transform.prototype, Duplex.prototype);
ObjectSetPrototypeOf(Transform, Duplex);

function final(callback) {
  const done = (error, data) => {
    if (error) {
      if (callback) callback(error);
      else this.destroy(error);
      return;
    }
    if (data !== undefined && data !== null) this.push(data);
    this.push(null);
    if (callback) callback();
  };
  if (typeof this._flush === "function" && !this.destroyed) this._flush(done);
  else done();
}

const transforming = {
  _transform() { throw errors.notImplemented("_transform()"); },
  _write(chunk, encoding, callback) {
    const r = this._readableState;
    const { length } = r;
    this._transform(chunk, encoding, (error, value) => {
      if (error) {
        callback(error);
        return;
      }
      if (value !== undefined && value !== null) this.push(value);
      if (this._writableState.ended || length === r.length || r.length < r.highWaterMark) callback();
      else this[kCallback] = callback;
    });
  },
  _read() {
    const callback = this[kCallback];
    if (!callback) return;
    this[kCallback] = null;
    callback();
  },
};
put(Transform.prototype, transforming);
put(Transform.prototype, { _final: final });

function PassThrough(options) {
  if (!(this instanceof PassThrough)) return new PassThrough(options);
  ReflectApply(Transform, this, [options]);
  return undefined;
}
ObjectSetPrototypeOf(PassThrough.prototype, Transform.prototype);
ObjectSetPrototypeOf(PassThrough, Transform);
put(PassThrough.prototype, { _transform(chunk, encoding, callback) { callback(null, chunk); } });

put(internal.node.streams, { PassThrough, Transform, Writable });
