// node/stream_readable_methods.js has the methods of Readable.

"use strict";

const { Symbol, SymbolAsyncIterator } = primordials;
const { AbortError, builtin, callLater, put } = internal.node;
const { Stream, destroying, errors, fail, prepend } = internal.node.streams;
const { Readable, initReadable, listening, read, resume, setDecoder, take } = internal.node.streams.readable;
const { Buffer } = builtin("buffer");
const EventEmitter = builtin("events");

const asyncDispose = Symbol.asyncDispose ?? primordials.SymbolFor("Symbol.asyncDispose");

function pipe(source, target, options) {
  const state = source._readableState;
  state.pipes.push(target);
  let cleaned = false;
  let onDrain;
  const end = () => target.end();
  const unpipe = () => source.unpipe(target);
  const ending = !options || options.end !== false ? end : unpipe;
  const pause = () => {
    if (!cleaned) {
      state.awaiting.add(target);
      source.pause();
    }
    if (onDrain) return;
    onDrain = () => {
      state.awaiting.delete(target);
      if (state.awaiting.size === 0 && source.listenerCount("data") > 0) source.resume();
    };
    target.on("drain", onDrain);
  };
  const onData = (chunk) => { if (target.write(chunk) === false) pause(); };
  const onError = (error) => {
    unpipe();
    target.removeListener("error", onError);
    if (target.listenerCount("error") !== 0) return;
    const s = target._writableState || target._readableState;
    if (s && !s.errorEmitted) fail(target, error);
    else target.emit("error", error);
  };
  const onClose = () => {
    target.removeListener("finish", onFinish);
    unpipe();
  };
  const onFinish = () => {
    target.removeListener("close", onClose);
    unpipe();
  };
  const onUnpipe = (readable, info) => {
    if (readable !== source || !info || info.hasUnpiped !== false) return;
    info.hasUnpiped = true;
    cleaned = true;
    target.removeListener("close", onClose);
    target.removeListener("finish", onFinish);
    if (onDrain) target.removeListener("drain", onDrain);
    target.removeListener("error", onError);
    target.removeListener("unpipe", onUnpipe);
    source.removeListener("end", ending);
    source.removeListener("data", onData);
    if (onDrain && state.awaiting.delete(target) && state.awaiting.size === 0 && source.listenerCount("data") > 0) source.resume();
  };
  if (state.endEmitted) callLater(ending);
  else source.once("end", ending);
  target.on("unpipe", onUnpipe);
  source.on("data", onData);
  prepend(target, "error", onError);
  target.once("close", onClose);
  target.once("finish", onFinish);
  target.emit("pipe", source);
  if (target.writableNeedDrain === true) pause();
  else if (!state.flowing) source.resume();
  return target;
}

// chunksOf gives the chunks of a stream one by one, and destroys it at the end.
async function* chunksOf(stream, options) {
  let wake = () => {};
  const onReadable = function (self) {
    if (this === stream) {
      wake();
      wake = () => {};
    } else wake = self;
  };
  stream.on("readable", onReadable);
  let error;
  const cleanup = internal.node.streams.finished(stream, { writable: false }, (e) => {
    error = e ? e : null;
    wake();
    wake = () => {};
  });
  try {
    for (;;) {
      const chunk = stream.destroyed ? null : stream.read();
      if (chunk !== null) yield chunk;
      else if (error) throw error;
      else if (error === null) return;
      else await new primordials.Promise(onReadable);
    }
  } catch (e) {
    error = e;
    throw e;
  } finally {
    if ((error || options?.destroyOnReturn !== false) && (error === undefined || stream._readableState.autoDestroy)) {
      stream.destroy(error ?? undefined);
    } else {
      stream.off("readable", onReadable);
      cleanup();
    }
  }
}

const methods = {
  _destroy(error, callback) { callback(error); },
  _undestroy() {},
  [EventEmitter.captureRejectionSymbol](error) { this.destroy(error); },
  [asyncDispose]() {
    let error;
    if (!this.destroyed) {
      error = this.readableEnded ? null : new AbortError();
      this.destroy(error);
    }
    return new primordials.Promise((resolve, reject) => {
      internal.node.streams.finished(this, (e) => (e && e !== error ? reject(e) : resolve(null)));
    });
  },
  push(chunk, encoding) { return take(this, chunk, encoding, false); },
  unshift(chunk, encoding) { return take(this, chunk, encoding, true); },
  isPaused() {
    const state = this._readableState;
    return state.paused === true || state.flowing === false;
  },
  setEncoding(encoding) {
    const state = this._readableState;
    setDecoder(state, encoding);
    let text = "";
    for (let i = state.first; i < state.buffer.length; i++) text += state.decoder.write(state.buffer[i]);
    state.buffer = text === "" ? [] : [text];
    state.first = 0;
    state.length = text.length;
    return this;
  },
  read(n) { return read(this, n); },
  _read() { throw errors.notImplemented("_read()"); },
  pipe(target, options) { return pipe(this, target, options); },
  unpipe(target) {
    const state = this._readableState;
    if (state.pipes.length === 0) return this;
    if (!target) {
      const { pipes } = state;
      state.pipes = [];
      this.pause();
      for (let i = 0; i < pipes.length; i++) pipes[i].emit("unpipe", this, { hasUnpiped: false });
      return this;
    }
    const at = state.pipes.indexOf(target);
    if (at === -1) return this;
    state.pipes.splice(at, 1);
    if (state.pipes.length === 0) this.pause();
    target.emit("unpipe", this, { hasUnpiped: false });
    return this;
  },
  on(event, listener) {
    const out = Stream.prototype.on.call(this, event, listener);
    const state = this._readableState;
    if (event === "data") {
      state.readableListening = this.listenerCount("readable") > 0;
      if (state.flowing !== false) this.resume();
    } else if (event === "readable" && !state.endEmitted && !state.readableListening) {
      state.readableListening = state.needReadable = true;
      state.flowing = false;
      state.emittedReadable = false;
      if (state.length) {
        state.needReadable = false;
        if (!state.emittedReadable) {
          state.emittedReadable = true;
          callLater(() => {
            if (!state.destroyed && !state.errored && (state.length || state.ended)) {
              this.emit("readable");
              state.emittedReadable = false;
            }
            state.needReadable = !state.flowing && !state.ended && state.length <= state.highWaterMark;
          });
        }
      } else if (!state.reading) callLater(() => this.read(0));
    }
    return out;
  },
  removeListener(event, listener) {
    const out = Stream.prototype.removeListener.call(this, event, listener);
    if (event === "readable") callLater(listening, this);
    return out;
  },
  removeAllListeners(event) {
    const out = Stream.prototype.removeAllListeners.apply(this, arguments);
    if (event === "readable" || event === undefined) callLater(listening, this);
    return out;
  },
  resume() {
    const state = this._readableState;
    if (!state.flowing) {
      state.flowing = !state.readableListening;
      resume(this, state);
    }
    state.paused = false;
    return this;
  },
  pause() {
    const state = this._readableState;
    if (state.flowing !== false) {
      state.flowing = false;
      this.emit("pause");
    }
    state.paused = true;
    return this;
  },
  wrap(old) {
    let paused = false;
    old.on("data", (chunk) => {
      if (!this.push(chunk) && old.pause) {
        paused = true;
        old.pause();
      }
    });
    old.on("end", () => this.push(null));
    old.on("error", (error) => fail(this, error));
    old.on("close", () => this.destroy());
    old.on("destroy", () => this.destroy());
    this._read = () => {
      if (paused && old.resume) {
        paused = false;
        old.resume();
      }
    };
    return this;
  },
  [SymbolAsyncIterator]() { return chunksOf(this); },
  iterator(options) { return chunksOf(this, options); },
};
put(Readable.prototype, destroying);
put(Readable.prototype, methods);
put(Readable.prototype, { addListener: methods.on, off: methods.removeListener });

// views of the state, which are not enumerable
const getters = {
  get readable() {
    const r = this._readableState;
    return !!r && r.readable !== false && !r.destroyed && !r.errorEmitted && !r.endEmitted;
  },
  set readable(value) { if (this._readableState) this._readableState.readable = !!value; },
  get readableDidRead() { return this._readableState.dataEmitted; },
  get readableAborted() { const s = this._readableState; return !!(s.readable !== false && (s.destroyed || s.errored) && !s.endEmitted); },
  get readableHighWaterMark() { return this._readableState.highWaterMark; },
  get readableBuffer() { return this._readableState?.buffer.slice(this._readableState.first); },
  get readableFlowing() { return this._readableState.flowing; },
  set readableFlowing(value) { if (this._readableState) this._readableState.flowing = value; },
  get readableLength() { return this._readableState.length; },
  get readableObjectMode() { return this._readableState ? this._readableState.objectMode : false; },
  get readableEncoding() { return this._readableState ? this._readableState.encoding : null; },
  get errored() { return this._readableState ? this._readableState.errored : null; },
  get closed() { return this._readableState ? this._readableState.closed : false; },
  get destroyed() { return this._readableState ? this._readableState.destroyed : false; },
  set destroyed(value) { if (this._readableState) this._readableState.destroyed = value; },
  get readableEnded() { return this._readableState ? this._readableState.endEmitted : false; },
};
put(Readable.prototype, getters, false);

function from(iterable, options) {
  if (typeof iterable === "string" || iterable instanceof Buffer) {
    return new Readable({
      objectMode: true, ...options,
      read() {
        this.push(iterable);
        this.push(null);
      },
    });
  }
  const isAsync = typeof iterable?.[SymbolAsyncIterator] === "function";
  if (!isAsync && typeof iterable?.[primordials.SymbolIterator] !== "function") {
    throw internal.node.wrongType("iterable", "an instance of Iterable", iterable);
  }
  const iterator = isAsync ? iterable[SymbolAsyncIterator]() : iterable[primordials.SymbolIterator]();
  const readable = new Readable({ objectMode: true, highWaterMark: 1, ...options });
  let reading = false;
  const next = async () => {
    for (;;) {
      try {
        const { value, done } = await iterator.next();
        if (done) {
          readable.push(null);
          return;
        }
        const chunk = await value;
        if (chunk === null) {
          reading = false;
          throw errors.nullValues();
        }
        if (!readable.push(chunk)) {
          reading = false;
          return;
        }
      } catch (error) {
        readable.destroy(error);
        return;
      }
    }
  };
  readable._read = () => {
    if (reading) return;
    reading = true;
    void next();
  };
  readable._destroy = (error, callback) => {
    const close = async () => {
      const given = error !== undefined && error !== null;
      if (given && typeof iterator.throw === "function") {
        const { value, done } = await iterator.throw(error);
        await value;
        if (done) return;
      }
      if (typeof iterator.return === "function") await (await iterator.return()).value;
    };
    close().then(() => callLater(callback, error), (e) => callLater(callback, e || error));
  };
  return readable;
}

put(Readable, {
  from,
  wrap(source, options) {
    return new Readable({
      objectMode: source.readableObjectMode ?? source.objectMode ?? true, ...options,
      destroy(error, callback) {
        internal.node.streams.destroyer(source, error);
        callback(error);
      },
    }).wrap(source);
  },
});
internal.node.streams.initReadable = initReadable;
