// node/stream.js is the module node:stream, with stream/promises, stream/consumers and stream/web.

"use strict";

const { ArrayBufferIsView, JSONParse, ReflectGet, globalThis } = primordials;
const { AbortError, builtin, hide, later, put } = internal.node;
const {
  Duplex, PassThrough, Stream, Transform, Writable, addAbortSignal, finished, isNodeStream, isWeb, marks, pipeline, promises,
} = internal.node.streams;
const { Readable } = internal.node.streams.readable;
const { Buffer } = builtin("buffer");

put(Stream, { Stream, Readable, Writable, Duplex, Transform, PassThrough });

async function gather(stream) {
  const parts = [];
  for await (const chunk of stream) {
    parts.push(typeof chunk === "string" ? Buffer.from(chunk)
      : ArrayBufferIsView(chunk) ? Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength) : Buffer.from(chunk));
  }
  return Buffer.concat(parts);
}

const consumers = {
  async arrayBuffer(stream) {
    const bytes = await gather(stream);
    return bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength);
  },
  async blob(stream) { return new (ReflectGet(globalThis, "Blob"))([await gather(stream)]); },
  async buffer(stream) { return gather(stream); },
  async json(stream) { return JSONParse(await consumers.text(stream)); },
  async text(stream) {
    const { StringDecoder } = builtin("string_decoder");
    const decoder = new StringDecoder("utf8");
    let out = "";
    for await (const chunk of stream) out += typeof chunk === "string" ? chunk : decoder.write(chunk);
    return out + decoder.end();
  },
};

function duplexPair(options) {
  const make = () => {
    let wake = null;
    const side = new Duplex({
      ...options,
      read() {
        const callback = wake;
        wake = null;
        callback?.();
      },
      write(chunk, _, callback) {
        if (chunk.length === 0) callback();
        else {
          side.other.push(chunk);
          side.wait(callback);
        }
      },
      final(callback) {
        side.other.on("end", callback);
        side.other.push(null);
      },
    });
    hide(side, "wait", undefined);
    hide(side, "other", undefined);
    return [side, (callback) => { wake = callback; }];
  };
  const [a, waitA] = make();
  const [b, waitB] = make();
  [a.other, b.other, a.wait, b.wait] = [b, a, waitB, waitA];
  return [a, b];
}

const functions = {
  addAbortSignal, duplexPair, finished, pipeline,
  compose(...streams) {
    if (streams.length === 1) return Duplex.from(streams[0]);
    const [first] = streams;
    const last = streams[streams.length - 1];
    const head = Duplex.from(first);
    pipeline(...[head, ...streams.slice(1)], (error) => { if (error) out.destroy(error); });
    const out = Duplex.from({ readable: isWeb(last) ? last : Duplex.from(last), writable: head });
    return out;
  },
  destroy(stream, error) {
    if (stream && !stream.destroyed) stream.destroy(error ?? (stream.readableEnded || stream.writableFinished ? undefined : new AbortError()));
  },
  getDefaultHighWaterMark(objectMode) { return objectMode ? marks.objects : marks.bytes; },
  setDefaultHighWaterMark(objectMode, value) {
    internal.node.checks.integer(value, "value", 0);
    marks[objectMode ? "objects" : "bytes"] = value;
  },
  isDestroyed(stream) { return isNodeStream(stream) ? !!(stream.destroyed ?? false) : null; },
  isDisturbed(stream) {
    if (internal.isReadableStream(stream)) return internal.isStreamDisturbed(stream);
    const r = stream?._readableState;
    return !!(stream && (r?.dataEmitted || (r && (r.destroyed || r.errored)) || stream.readableDidRead || stream.readableAborted));
  },
  isErrored(stream) {
    return !!(stream && (stream.errored ?? stream._readableState?.errored ?? stream._writableState?.errored));
  },
  isReadable(stream) {
    if (internal.isReadableStream(stream)) return true;
    return typeof stream?.readable !== "boolean" ? null : stream.readable && !stream.destroyed;
  },
  isWritable(stream) {
    return typeof stream?.writable !== "boolean" ? null : stream.writable && !stream.destroyed;
  },
  _isUint8Array(value) { return ArrayBufferIsView(value) && primordials.TypedArrayPrototypeGetTag(value) === "Uint8Array"; },
  _isArrayBufferView(value) { return ArrayBufferIsView(value); },
  _uint8ArrayToBuffer(chunk) { return Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength); },
};
put(Stream, functions);
const { kCustomPromisify } = internal.node;
hide(finished, kCustomPromisify, promises.finished);
hide(pipeline, kCustomPromisify, promises.pipeline);
put(Stream, { promises: put({}, promises) });

const webNames = [
  "ByteLengthQueuingStrategy", "CompressionStream", "CountQueuingStrategy", "DecompressionStream", "ReadableByteStreamController",
  "ReadableStream", "ReadableStreamBYOBReader", "ReadableStreamBYOBRequest", "ReadableStreamDefaultController",
  "ReadableStreamDefaultReader", "TextDecoderStream", "TextEncoderStream", "TransformStream", "TransformStreamDefaultController",
  "WritableStream", "WritableStreamDefaultController", "WritableStreamDefaultWriter",
];
const web = {};
for (let i = 0; i < webNames.length; i++) later(web, webNames[i], () => ReflectGet(globalThis, webNames[i]));

hide(Stream, "consumers", put({}, consumers));
hide(Stream, "web", web);
internal.nodeModules.stream = Stream;
