// streams/compression.js is CompressionStream and DecompressionStream. Go does the work on other threads, in pieces.
// The code enqueues the output of a piece as it arrives. The next piece waits until the output is read.

"use strict";

const { TypeError, lengthOf, sealedProto, subarray } = primordials;
const {
  copyBytes, defineInterface, illegalInvocation, isBufferSource, isObject, liveBytes, newCapability, requireArguments, sendOps,
  streams, toEnum, upon,
} = internal;
const { send } = host;
const { ZIP, ZIP_CLOSE } = sendOps;

const formats = ["deflate", "deflate-raw", "gzip"];
const PIECE = 262144; // bytes of input for one step
const AHEAD = 16; // chunks enqueued before a step waits for a reader
const MORE = 1;
const WRONG = 2;
const END = 4;

const TRAILING = "there is data after the end of the compressed data";

let lastId = 0;

// Zip is the state of a stream. The first step makes its Go part, which belongs to the event that acts at that time.
class Zip {
  id = ++lastId;
  format;
  compress;
  transform = null;
  run = null;
  begun = false;
  closed = false;
  ended = false; // the compressed data is complete
  constructor(format, compress) {
    this.format = format;
    this.compress = compress;
  }
}
sealedProto(Zip);

function newZip(format, compress, what) {
  const zip = new Zip(toEnum(format, formats, `new ${what}: the format`), compress);
  zip.transform = streams.newTransform((chunk) => write(zip, chunk, what), () => steps(zip, null, true), () => { close(zip); });
  return zip;
}

function write(zip, chunk, what) {
  try {
    if (!isBufferSource(chunk)) throw new TypeError(`${what}: a chunk is neither an ArrayBuffer nor a view of one`);
    const bytes = liveBytes(chunk);
    return steps(zip, lengthOf(bytes) > PIECE ? copyBytes(bytes) : bytes, false);
  } catch (error) {
    close(zip);
    throw error;
  }
}

// steps passes bytes to Go, piece by piece, and enqueues the output.
function steps(zip, bytes, last) {
  if (zip.ended) {
    if (bytes !== null && lengthOf(bytes) > 0) throw new TypeError(TRAILING);
    return undefined;
  }
  const done = newCapability();
  const n = bytes === null ? 0 : lengthOf(bytes);
  let at = 0;
  const next = () => {
    const from = at;
    at = at + PIECE < n ? at + PIECE : n;
    step(zip, bytes === null ? null : subarray(bytes, from, at), last, took, failed);
  };
  const took = (flags, problem) => {
    if ((flags & END) !== 0) zip.ended = true;
    if ((flags & WRONG) !== 0 || (zip.ended && at < n)) failed(new TypeError(problem));
    else if (streams.transformOver(zip.transform)) finish();
    else if ((flags & MORE) !== 0) whenRoom(zip, () => { step(zip, null, last, took, failed); }, finish);
    else if (at < n) whenRoom(zip, next, finish);
    else finish();
  };
  const finish = () => {
    if (last || zip.ended || streams.transformOver(zip.transform)) close(zip);
    done.resolve(undefined);
  };
  const failed = (error) => {
    close(zip);
    done.reject(error);
  };
  try {
    next();
  } catch (error) {
    failed(error);
  }
  return done.promise;
}

// whenRoom calls go when the reader has room for more, or end when the reader takes no more.
function whenRoom(zip, go, end) {
  const room = streams.transformRoom(zip.transform, AHEAD);
  if (room === null) go();
  else upon(room, () => { streams.transformOver(zip.transform) ? end() : go(); });
}

// step runs one step. If it cannot enqueue, the reader has ended, and this is not an error of the stream.
function step(zip, bytes, last, took, failed) {
  const first = !zip.begun;
  if (first) {
    zip.begun = true;
    zip.run = internal.acting();
  }
  if (zip.run !== null && zip.run.over) {
    failed(new TypeError("the stream belongs to an event that is over"));
    return;
  }
  try {
    internal.beginWork(zip.run, ZIP, [zip.id, zip.format, zip.compress, first, bytes, last], read, (answer) => {
      if (lengthOf(answer[0]) > 0 && !streams.transformOver(zip.transform)) streams.transformEnqueue(zip.transform, answer[0]);
      const flags = answer[1][0];
      took(flags, (flags & WRONG) === 0 ? TRAILING : host.decode(answer[2], false));
    }, failed);
  } catch (error) {
    failed(error);
  }
}

function read(answer) {
  if (typeof answer === "string") throw new TypeError(answer);
  return answer;
}

function close(zip) {
  if (!zip.begun || zip.closed || (zip.run !== null && zip.run.over)) return;
  zip.closed = true;
  internal.speakFor(zip.run);
  send(ZIP_CLOSE, zip.id);
}

class CompressionStream {
  #zip;
  constructor(format) {
    requireArguments(arguments.length, 1, "new CompressionStream");
    this.#zip = newZip(format, true, "CompressionStream");
  }
  get readable() {
    if (!isObject(this) || !(#zip in this)) throw illegalInvocation("CompressionStream");
    return streams.transformReadable(this.#zip.transform);
  }
  get writable() {
    if (!isObject(this) || !(#zip in this)) throw illegalInvocation("CompressionStream");
    return streams.transformWritable(this.#zip.transform);
  }
}
defineInterface(CompressionStream, "CompressionStream");

class DecompressionStream {
  #zip;
  constructor(format) {
    requireArguments(arguments.length, 1, "new DecompressionStream");
    this.#zip = newZip(format, false, "DecompressionStream");
  }
  get readable() {
    if (!isObject(this) || !(#zip in this)) throw illegalInvocation("DecompressionStream");
    return streams.transformReadable(this.#zip.transform);
  }
  get writable() {
    if (!isObject(this) || !(#zip in this)) throw illegalInvocation("DecompressionStream");
    return streams.transformWritable(this.#zip.transform);
  }
}
defineInterface(DecompressionStream, "DecompressionStream");
