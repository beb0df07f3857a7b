// node/stream_web.js turns streams of node:stream into those of the web platform and back, and has the helpers of
// Readable that work on each chunk.

"use strict";

const { Promise, ReflectGet, SymbolAsyncIterator, SymbolIterator, globalThis } = primordials;
const { AbortError, checks, put, wrongType } = internal.node;
const { Duplex, PassThrough, Writable, destroyer, finished } = internal.node.streams;
const { Readable } = internal.node.streams.readable;

const web = (name) => ReflectGet(globalThis, name);

function bytesForWeb(stream, chunk) {
  if (stream.readableObjectMode || typeof chunk === "string") return chunk;
  return new primordials.Uint8Array(chunk.buffer, chunk.byteOffset, chunk.byteLength);
}

function toWebReadable(stream, options) {
  if (typeof stream?._readableState !== "object") throw wrongType("streamReadable", "an instance of stream.Readable", stream);
  const { readableObjectMode: objects, readableHighWaterMark: mark } = stream;
  let controller;
  let over = false;
  const strategy = options?.strategy ?? (objects ? new (web("CountQueuingStrategy"))({ highWaterMark: mark })
    : new (web("ByteLengthQueuingStrategy"))({ highWaterMark: mark }));
  stream.pause();
  finished(stream, { writable: false }, (error) => {
    stream.on("error", () => {});
    if (over) return;
    over = true;
    if (error) controller.error(error);
    else controller.close();
  });
  stream.on("data", (chunk) => {
    controller.enqueue(bytesForWeb(stream, chunk));
    if (controller.desiredSize <= 0) stream.pause();
  });
  stream.pause();
  return new (web("ReadableStream"))({
    start(c) { controller = c; },
    pull() { stream.resume(); },
    cancel(reason) {
      over = true;
      destroyer(stream, reason ?? new AbortError());
    },
  }, strategy);
}

function fromWebReadable(stream, options = {}) {
  if (!internal.isReadableStream(stream)) throw wrongType("readableStream", "an instance of ReadableStream", stream);
  checks.object(options, "options");
  const reader = stream.getReader();
  let closed = false;
  const readable = new Readable({
    objectMode: options.objectMode ?? false, highWaterMark: options.highWaterMark, encoding: options.encoding, signal: options.signal,
    read() {
      reader.read().then(({ done, value }) => readable.push(done ? null : value), (error) => readable.destroy(error));
    },
    destroy(error, callback) {
      if (closed) {
        callback(error);
        return;
      }
      reader.cancel(error ?? undefined).then(() => callback(error), () => callback(error));
    },
  });
  reader.closed.then(() => { closed = true; }, (error) => {
    closed = true;
    readable.destroy(error);
  });
  return readable;
}

function toWebWritable(stream) {
  if (typeof stream?._writableState !== "object") throw wrongType("streamWritable", "an instance of stream.Writable", stream);
  let controller;
  finished(stream, { readable: false }, (error) => {
    stream.on("error", () => {});
    if (error) controller.error(error);
  });
  return new (web("WritableStream"))({
    start(c) { controller = c; },
    write(chunk) {
      return new Promise((resolve, reject) => {
        if (stream.write(chunk, (error) => { if (error) reject(error); })) resolve();
        else stream.once("drain", resolve);
      });
    },
    abort(reason) { destroyer(stream, reason); },
    close() { return new Promise((resolve, reject) => { stream.end((error) => (error ? reject(error) : resolve())); }); },
  }, { highWaterMark: stream.writableHighWaterMark, size: stream.writableObjectMode ? undefined : (chunk) => chunk?.length ?? 1 });
}

function fromWebWritable(stream, options = {}) {
  if (!internal.isWritableStream(stream)) throw wrongType("writableStream", "an instance of WritableStream", stream);
  const writer = stream.getWriter();
  const writable = new Writable({
    objectMode: options.objectMode ?? false, highWaterMark: options.highWaterMark, decodeStrings: options.decodeStrings, signal: options.signal,
    write(chunk, _, callback) { writer.ready.then(() => writer.write(chunk)).then(() => callback(), callback); },
    final(callback) { writer.close().then(() => callback(), callback); },
    destroy(error, callback) {
      if (error) writer.abort(error).then(() => callback(error), () => callback(error));
      else callback(error);
    },
  });
  writer.closed.then(undefined, (error) => writable.destroy(error));
  return writable;
}

// join makes a Duplex of two streams.
function join(readable, writable, options) {
  const duplex = new Duplex({
    ...options, readableObjectMode: readable?.readableObjectMode, writableObjectMode: writable?.writableObjectMode,
    readable: !!readable, writable: !!writable,
    read() { readable?.resume(); },
    write(chunk, encoding, callback) {
      if (writable.write(chunk, encoding)) callback();
      else writable.once("drain", callback);
    },
    final(callback) {
      writable.end();
      writable.on("finish", callback);
    },
    destroy(error, callback) {
      destroyer(readable, error);
      destroyer(writable, error);
      callback(error);
    },
  });
  if (readable) {
    readable.on("data", (chunk) => { if (!duplex.push(chunk)) readable.pause(); });
    readable.on("end", () => duplex.push(null));
    readable.on("error", (error) => duplex.destroy(error));
    readable.pause();
  }
  writable?.on("error", (error) => duplex.destroy(error));
  return duplex;
}

function duplexFrom(body) {
  if (body instanceof Duplex) return body;
  if (internal.isReadableStream(body)) return join(fromWebReadable(body), undefined);
  if (internal.isWritableStream(body)) return join(undefined, fromWebWritable(body));
  if (internal.isBlob(body)) return join(fromWebReadable(body.stream()), undefined);
  if (body instanceof Readable) return join(body, undefined);
  if (body instanceof Writable) return join(undefined, body);
  if (typeof body === "string" || typeof body?.[SymbolAsyncIterator] === "function" || typeof body?.[SymbolIterator] === "function") {
    return join(Readable.from(body), undefined);
  }
  if (typeof body === "function") {
    const input = new PassThrough({ objectMode: true });
    const result = body(input);
    if (typeof result?.[SymbolAsyncIterator] === "function") return join(Readable.from(result), input, { objectMode: true });
    return join(undefined, input, { objectMode: true });
  }
  if (body?.readable || body?.writable) {
    const r = internal.isReadableStream(body.readable) ? fromWebReadable(body.readable) : body.readable;
    const w = internal.isWritableStream(body.writable) ? fromWebWritable(body.writable) : body.writable;
    return join(r, w);
  }
  if (typeof body?.then === "function") {
    return join(Readable.from((async function* () {
      const value = await body;
      if (value !== null && value !== undefined) yield value;
    })()), undefined);
  }
  throw wrongType("body", "a stream, an iterable, a function, or a promise", body);
}

put(Readable, { fromWeb: fromWebReadable, toWeb: toWebReadable });
put(Writable, { fromWeb: fromWebWritable, toWeb: toWebWritable });
put(Duplex, {
  from: duplexFrom,
  fromWeb(pair, options) {
    return join(fromWebReadable(pair.readable, options), fromWebWritable(pair.writable, options), options);
  },
  toWeb(duplex) { return { readable: toWebReadable(duplex), writable: toWebWritable(duplex) }; },
});

// ---- helpers ----

// each calls fn for the chunks of a stream in order. Concurrency is one: the order is what programs see.
async function* each(stream, fn, options) {
  const signal = options?.signal;
  for await (const chunk of stream) {
    if (signal?.aborted) throw new AbortError(undefined, { cause: signal.reason });
    yield [chunk, await fn(chunk, { signal })];
  }
}

function checkFunction(fn) { checks.function(fn, "fn"); }

const streaming = {
  async* map(fn, options) { for await (const [, value] of each(this, fn, options)) yield value; },
  async* filter(fn, options) { for await (const [chunk, value] of each(this, fn, options)) if (value) yield chunk; },
  async* flatMap(fn, options) { for await (const [, value] of each(this, fn, options)) yield* value; },
  async* drop(n) { for await (const chunk of this) if (n-- <= 0) yield chunk; },
  async* take(n) {
    if (n <= 0) return;
    for await (const chunk of this) {
      yield chunk;
      if (--n <= 0) return;
    }
  },
};
const over = (name) => ({
  [name](fn, options) {
    if (name === "drop" || name === "take") checks.number(fn = +fn, "number", 0);
    else checkFunction(fn);
    return Readable.from(primordials.ReflectApply(streaming[name], this, [fn, options]));
  },
});
const streamed = ["map", "filter", "flatMap", "drop", "take"];
for (let i = 0; i < streamed.length; i++) put(Readable.prototype, over(streamed[i]));

put(Readable.prototype, {
  async forEach(fn, options) {
    checkFunction(fn);
    for await (const _ of each(this, fn, options));
  },
  async toArray(options) {
    const list = [];
    for await (const chunk of this) {
      if (options?.signal?.aborted) throw new AbortError(undefined, { cause: options.signal.reason });
      list.push(chunk);
    }
    return list;
  },
  async some(fn, options) {
    checkFunction(fn);
    for await (const [, value] of each(this, fn, options)) if (value) return true;
    return false;
  },
  async every(fn, options) {
    checkFunction(fn);
    for await (const [, value] of each(this, fn, options)) if (!value) return false;
    return true;
  },
  async find(fn, options) {
    checkFunction(fn);
    for await (const [chunk, value] of each(this, fn, options)) if (value) return chunk;
    return undefined;
  },
  async reduce(fn, ...rest) {
    checkFunction(fn);
    let [value] = rest;
    let empty = rest.length === 0;
    for await (const chunk of this) {
      value = empty ? chunk : await fn(value, chunk, {});
      empty = false;
    }
    if (empty) throw internal.node.coded(primordials.TypeError, "ERR_MISSING_ARGS", "Reduce of an empty stream requires an initial value");
    return value;
  },
  compose(stream) { return duplexFrom(this).pipe(stream); },
});
