// node/stream_finished.js has finished() and pipeline() of node:stream.

"use strict";

const { Promise, ReflectApply, SymbolAsyncIterator, SymbolIterator, TypeError } = primordials;
const { AbortError, builtin, callLater, checks, coded, wrongType } = internal.node;
const { Duplex, PassThrough, destroyer, errors, isNodeStream } = internal.node.streams;
const { Readable } = internal.node.streams.readable;
const EventEmitter = builtin("events");

const dispose = primordials.Symbol.dispose ?? primordials.SymbolFor("Symbol.dispose");
const nothing = () => {};

const isWeb = (s) => internal.isReadableStream(s) || internal.isWritableStream(s) || internal.isTransformStream(s);

// webFinished is finished() of a stream of the web platform.
function webFinished(stream, callback) {
  let over = false;
  const done = (error) => {
    if (over) return;
    over = true;
    callLater(callback, error);
  };
  if (internal.isWritableStream(stream) && !stream.locked) {
    const writer = stream.getWriter();
    writer.closed.then(() => done(), done);
    writer.releaseLock();
  } else if (internal.isReadableStream(stream) && !stream.locked) {
    const reader = stream.getReader();
    reader.closed.then(() => done(), done);
    reader.releaseLock();
  } else done();
  return nothing;
}

function finished(stream, options, callback) {
  if (typeof options === "function") {
    callback = options;
    options = {};
  } else if (options === undefined || options === null) options = {};
  else checks.object(options, "options");
  checks.function(callback, "callback");
  checks.signal(options.signal, "options.signal");
  const plain = callback;
  let called = false;
  callback = (...args) => {
    if (called) return;
    called = true;
    ReflectApply(plain, stream, args);
  };
  if (isWeb(stream)) return webFinished(stream, callback);
  if (!isNodeStream(stream)) throw wrongType("stream", "an instance of ReadableStream, WritableStream, or Stream", stream);
  return watch(stream, options, callback);
}

function watch(stream, options, callback) {
  const r = stream._readableState;
  const w = stream._writableState;
  const hasReadable = r ? r.readable !== false : typeof stream.read === "function" || stream.readable === true;
  const hasWritable = w ? w.writable !== false : typeof stream.write === "function" || stream.writable === true;
  const readable = options.readable ?? hasReadable;
  const writable = options.writable ?? hasWritable;
  const willClose = !!((w ?? r) && (w?.autoDestroy ?? r?.autoDestroy) && (w?.emitClose ?? r?.emitClose) &&
    readable === hasReadable && writable === hasWritable && !(w ?? r).closed);
  let writableFinished = w ? w.finished : false;
  let readableEnded = r ? r.endEmitted : false;
  const failure = () => r?.errored ?? w?.errored;
  const onFinish = () => {
    writableFinished = true;
    if (stream.destroyed && !failure() && willClose) return;
    if (willClose && (!stream.readable || readable)) return;
    if (!readable || readableEnded) callback();
  };
  const onEnd = () => {
    readableEnded = true;
    if (willClose && (!stream.writable || writable)) return;
    if (!writable || writableFinished) callback();
  };
  const onError = (error) => callback(error);
  const onClose = () => {
    const error = failure();
    if (error && typeof error !== "boolean") callback(error);
    else if (readable && !readableEnded && r && !r.endEmitted) callback(errors.premature());
    else if (writable && !writableFinished && w && !w.finished) callback(errors.premature());
    else callback();
  };
  stream.on("end", onEnd);
  stream.on("finish", onFinish);
  if (options.error !== false) stream.on("error", onError);
  stream.on("close", onClose);
  const closed = !!(w?.closed || r?.closed);
  if (closed || (w?.errorEmitted || r?.errorEmitted)) callLater(onClose);
  else if (!readable && (!willClose || stream.readable) && (writableFinished || stream.writable === false) && w) callLater(onClose);
  else if (!writable && (!willClose || stream.writable) && (readableEnded || stream.readable === false) && r) callLater(onClose);
  let cleanup = () => {
    callback = nothing;
    stream.removeListener("end", onEnd);
    stream.removeListener("finish", onFinish);
    stream.removeListener("error", onError);
    stream.removeListener("close", onClose);
  };
  const { signal } = options;
  if (signal && !closed) {
    const abort = () => {
      const end = callback;
      cleanup();
      end(new AbortError(undefined, { __proto__: null, cause: signal.reason }));
    };
    if (signal.aborted) callLater(abort);
    else {
      const remove = EventEmitter.addAbortListener(signal, abort);
      const inner = cleanup;
      cleanup = () => {
        inner();
        remove[dispose]();
      };
    }
  }
  return () => cleanup();
}

// ---- pipeline ----

const isIterable = (value) => typeof value?.[SymbolAsyncIterator] === "function" || typeof value?.[SymbolIterator] === "function";

async function pump(iterable, target, done) {
  let error;
  let wake;
  const resume = (e) => {
    if (e) error = e;
    wake?.();
    wake = undefined;
  };
  const wait = () => new Promise((resolve, reject) => {
    if (error) reject(error);
    else wake = () => (error ? reject(error) : resolve());
  });
  target.on("drain", resume);
  const cleanup = finished(target, { readable: false }, resume);
  try {
    if (target.writableNeedDrain) await wait();
    for await (const chunk of iterable) if (!target.write(chunk)) await wait();
    if (typeof target.end === "function") target.end();
    if (!target.writableFinished) await wait();
    done();
  } catch (e) {
    done(error !== e && error ? error : e);
  } finally {
    cleanup();
    target.off("drain", resume);
  }
}

function nodeStream(value, last) {
  if (internal.isTransformStream(value)) return Duplex.fromWeb(value);
  if (internal.isReadableStream(value)) return last ? value : Readable.fromWeb(value);
  if (internal.isWritableStream(value)) return internal.node.streams.Writable.fromWeb(value);
  return value;
}

function pipeline(...streams) {
  const callback = streams.pop();
  checks.function(callback, "streams[stream.length - 1]");
  return run(streams.length === 1 && primordials.ArrayIsArray(streams[0]) ? streams[0] : streams, callback);
}

function run(streams, callback, options) {
  if (streams.length < 2) throw coded(TypeError, "ERR_MISSING_ARGS", 'The "streams" argument must be specified');
  const { signal } = options ?? {};
  let error;
  let value;
  let left = 0;
  const made = [];
  const finish = (e, final) => {
    if (e && (!error || error.code === "ERR_STREAM_PREMATURE_CLOSE")) error = e;
    if (!error && !final) return;
    while (made.length > 0) made.shift()(error);
    if (!final) return;
    remove?.();
    callLater(callback, error, value);
  };
  const step = (e) => finish(e, --left === 0);
  const remove = signal === undefined ? undefined : onAbort(signal, () => finish(new AbortError(undefined, { cause: signal.reason }), false));
  let current;
  for (let i = 0; i < streams.length; i++) {
    const stream = nodeStream(streams[i], false);
    const last = i === streams.length - 1;
    if (isNodeStream(stream)) {
      const destroy = watched(stream);
      made.push(destroy);
    }
    if (i === 0) current = first(stream, signal);
    else if (typeof stream === "function") {
      const result = stream(isNodeStream(current) || isIterable(current) ? asIterable(current) : current, { signal });
      if (!last) {
        if (!isIterable(result)) throw coded(TypeError, "ERR_INVALID_RETURN_VALUE", "Expected AsyncIterable to be returned from the transform function");
        current = result;
      } else if (typeof result?.then === "function") {
        left++;
        result.then((v) => {
          value = v;
          step();
        }, step);
      } else if (isIterable(result)) {
        const through = new PassThrough({ objectMode: true });
        left++;
        void pump(result, through, step);
        current = through;
        left++;
        finished(through, step);
        return through;
      } else throw coded(TypeError, "ERR_INVALID_RETURN_VALUE", "Expected AsyncIterable or Promise to be returned from the destination function");
    } else if (isNodeStream(stream)) {
      if (isNodeStream(current) && typeof current.pipe === "function") {
        left += 2;
        connect(current, stream, step);
      } else {
        left++;
        void pump(current, stream, step);
      }
      current = stream;
    } else throw wrongType("streams", "of type function or an instance of Stream, Iterable, or AsyncIterable", stream);
  }
  return current;
}

function first(stream, signal) {
  if (typeof stream !== "function") {
    if (isNodeStream(stream) || isIterable(stream)) return stream;
    return Duplex.from?.(stream) ?? stream;
  }
  const result = stream({ signal });
  if (!isIterable(result)) throw coded(TypeError, "ERR_INVALID_RETURN_VALUE", "Expected Iterable, AsyncIterable or Stream to be returned");
  return result;
}

const asIterable = (value) => (isNodeStream(value) && typeof value[SymbolAsyncIterator] !== "function" ? Readable.wrap(value) : value);

// watched returns the function that destroys the stream if the pipeline fails before the stream ends.
function watched(stream) {
  let over = false;
  finished(stream, (error) => { over = !error; });
  return (error) => {
    if (over) return;
    over = true;
    if (error) destroyer(stream, error);
  };
}

function connect(source, target, step) {
  source.pipe(target, { end: true });
  finished(source, { readable: true, writable: false }, (error) => {
    const r = source._readableState;
    if (error?.code === "ERR_STREAM_PREMATURE_CLOSE" && r?.ended && !r.errored && !r.errorEmitted) {
      source.once("end", () => step()).once("error", step);
    } else step(error);
  });
  finished(target, { readable: false, writable: true }, step);
}

function onAbort(signal, abort) {
  checks.signal(signal, "options.signal");
  if (signal.aborted) {
    callLater(abort);
    return nothing;
  }
  const remove = EventEmitter.addAbortListener(signal, abort);
  return () => remove[dispose]();
}

const promises = {
  finished(stream, options) {
    return new Promise((resolve, reject) => { finished(stream, options, (error) => (error ? reject(error) : resolve())); });
  },
  pipeline(...streams) {
    return new Promise((resolve, reject) => {
      let options;
      const last = streams[streams.length - 1];
      if (last && typeof last === "object" && !isNodeStream(last) && !isIterable(last) && !isWeb(last)) options = streams.pop();
      run(streams, (error, value) => (error ? reject(error) : resolve(value)), options);
    });
  },
};

internal.node.put(internal.node.streams, { finished, isWeb, pipeline, promises });
