// node/zlib_streams.js has the streams of node:zlib. Those that decompress have a reader in Go, as a DecompressionStream
// has.

"use strict";

const { List, ReflectApply, Uint8Array, lengthOf, subarray } = primordials;
const { concatBytes, liveBytes, sendOps, subtleOps } = internal;
const { builtin } = internal.node;
const { over } = internal.node.bufferParts;
const { Deflater, ENDS_EARLY, answered, brotliOptions, empty, inRange, tooLarge, zlibError, zlibOptions } = internal.node.zlibParts;
const { PIECE, asked, later, soon } = internal.nodeModule("work");
const { Transform } = builtin("stream");
const { Buffer } = builtin("buffer");
const { send } = host;

const WAITS = 65536; // so many bytes are compressed together
const HERE = 16384; // a part of at most so many is compressed while JavaScript waits
const MOST_BROTLI = 4194304; // as in isolates/offload/compression

const kFlushes = new List(); // the chunks that stand for flush()
for (let i = 0; i < 6; i++) kFlushes[i] = Buffer.alloc(0);

function flushOf(chunk) {
  for (let i = 0; i < 6; i++) if (kFlushes[i] === chunk) return i;
  return -1;
}

// Base is what the classes share.
class Base extends Transform {
  constructor(options, read) {
    const o = read(options);
    super({ autoDestroy: true, ...options });
    this.bytesWritten = 0;
    this._chunkSize = o.chunkSize;
    this._level = o.level;
    this._maxOutputLength = o.most;
    this._info = o.info;
  }
  get _closed() { return this.destroyed; }
  get bytesRead() { return this.bytesWritten; }
  flush(kind, callback) {
    if (typeof kind === "function" || kind === undefined) {
      callback = kind;
      kind = 3;
    }
    if (this.writableFinished) {
      if (callback) soon(callback);
    } else if (this.writableEnded) {
      if (callback) this.once("end", callback);
    } else this.write(kFlushes[kind] ?? kFlushes[3], "", callback);
  }
  close(callback) {
    if (callback) {
      if (this.closed) soon(callback);
      else this.once("close", callback);
    }
    this.destroy();
  }
  params(level, strategy, callback) {
    inRange(level, "level", -1, 9);
    inRange(strategy, "strategy", 0, 4);
    this.flush(2, () => {
      if (this.relevel) this.relevel(level);
      if (callback) callback();
    });
  }
}

// Compressing streams gather what is written, and compress it when there is enough.
function compressing(name, kind, least) {
  return class extends Base {
    #deflater;
    #parts = new List();
    #n = 0;
    #options;
    constructor(options = undefined) {
      let o;
      super(options, (given) => (o = zlibOptions(given, least)));
      this.#options = o;
      this.#deflater = new Deflater(kind, o.level);
    }
    relevel(level) { this.#deflater.level = inRange(level, "level", -1, 9, -1); } // code of the worker can call it
    reset() {
      this.#deflater = new Deflater(kind, this.#options.level);
      this.#parts = new List();
      this.#n = 0;
    }
    _transform(chunk, encoding, callback) {
      const flush = flushOf(chunk);
      if (flush === -1) {
        const bytes = liveBytes(chunk);
        const n = lengthOf(bytes);
        this.bytesWritten += n;
        this.#n += n;
        this.#parts[this.#parts.length] = n < WAITS ? new Uint8Array(bytes) : bytes;
      }
      const flushes = flush > 0 || this.#options.flush > 0;
      if (this.#n >= WAITS || flushes) this.#give(false, () => {
        if (flush === 3) this.#deflater.before = null;
        callback();
      }, callback);
      else callback();
    }
    _flush(callback) { this.#give(true, callback, callback); }
    #give(last, done, failed) {
      const bytes = concatBytes(this.#parts);
      this.#parts = new List();
      this.#n = 0;
      const n = lengthOf(bytes);
      const deflater = this.#deflater;
      let at = 0;
      const next = () => {
        const to = at + PIECE < n ? at + PIECE : n;
        const part = subarray(bytes, at, to);
        at = to;
        const ends = last && at === n;
        const took = (error, answer) => {
          if (this.destroyed) return;
          if (error) {
            failed(error);
            return;
          }
          this.push(over(deflater.took(answer, part, ends)));
          if (at < n) next();
          else done();
        };
        try {
          if (lengthOf(part) <= HERE) took(null, answered(asked(deflater.args(part, ends)), name));
          else later(deflater.args(part, ends), (answer) => [null, answer], took, (text) => zlibError(text, name));
        } catch (error) {
          failed(error);
        }
      };
      next();
    }
  };
}

let lastId = 0; // those of CompressionStreams are positive

const MORE = 1;
const WRONG = 2;
const END = 4;

// Decompressing streams have a reader in Go, which belongs to the event that first writes to it.
function decompressing(format, read) {
  return class extends Base {
    #options;
    #id = 0;
    #run = null;
    #over = false;
    constructor(options = undefined) {
      let o;
      super(options, (given) => (o = read(given)));
      this.#options = o;
    }
    reset() {
      this.#close();
      this.#over = false;
    }
    _transform(chunk, encoding, callback) {
      if (flushOf(chunk) !== -1 || this.#over) {
        callback();
        return;
      }
      const bytes = liveBytes(chunk);
      const n = lengthOf(bytes);
      this.bytesWritten += n;
      let at = 0;
      const next = () => {
        const to = at + PIECE < n ? at + PIECE : n;
        const from = at;
        at = to;
        this.#step(subarray(bytes, from, to), false, () => { at < n && !this.#over ? next() : callback(); }, callback);
      };
      next();
    }
    _flush(callback) {
      if (this.#over) callback();
      else this.#step(null, true, callback, callback);
    }
    _destroy(error, callback) {
      this.#close();
      callback(error);
    }
    #close() {
      if (this.#id === 0) return;
      if (this.#run === null || !this.#run.over) {
        internal.speakFor(this.#run);
        send(sendOps.ZIP_CLOSE, this.#id);
      }
      this.#id = 0;
    }
    #step(bytes, last, done, failed) {
      const first = this.#id === 0;
      if (first) {
        this.#id = --lastId;
        this.#run = internal.acting();
      }
      const frame = internal.inheritFrame();
      const fail = (error) => { internal.callIn(frame, failed, undefined, [error]); };
      if (internal.eventIsOver() || (this.#run !== null && this.#run.over)) {
        failed(zlibError("the stream belongs to an event that is over", format));
        return;
      }
      try {
        internal.beginWork(this.#run, sendOps.ZIP, [this.#id, format, false, first, bytes, last],
          (answer) => this.#checked(answer), (answer) => {
            internal.callIn(frame, (a) => { this.#took(a, last, done, failed); }, undefined, [answer]);
          }, fail);
      } catch (error) {
        failed(error);
      }
    }
    // #checked throws what is wrong with the data, if no bytes come before it.
    #checked(answer) {
      if (typeof answer !== "string") return answer;
      if (answer === ENDS_EARLY && this.#options.partly) return [empty, [END]];
      throw zlibError(answer, format);
    }
    #took(answer, last, done, failed) {
      if (this.destroyed) return;
      const flags = answer[1][0];
      const room = lengthOf(answer[0]) === 0 || this.push(over(answer[0]));
      if ((flags & WRONG) !== 0) {
        const text = host.decode(answer[2], false);
        if (text !== ENDS_EARLY || !this.#options.partly) {
          failed(zlibError(text, format));
          return;
        }
      }
      if ((flags & END) !== 0 || last && (flags & MORE) === 0) {
        this.#over = true;
        this.#close();
      }
      if ((flags & MORE) === 0) done();
      else if (room) this.#step(null, last, done, failed);
      else this.#wait(() => { this.#step(null, last, done, failed); });
    }
    // #wait goes on when the reader wants more.
    #wait(go) {
      const { _read } = this;
      this._read = function (n) {
        this._read = _read;
        go();
        ReflectApply(_read, this, [n]);
      };
    }
  };
}

// BrotliCompress compresses when all is there: its writer has no parts.
class BrotliCompress extends Base {
  #options;
  #parts = new List();
  constructor(options = undefined) {
    let o;
    super(options, (given) => (o = brotliOptions(given)));
    this.#options = o;
  }
  _transform(chunk, encoding, callback) {
    if (flushOf(chunk) === -1) {
      this.bytesWritten += lengthOf(chunk);
      if (this.bytesWritten > MOST_BROTLI) {
        callback(tooLarge(MOST_BROTLI));
        return;
      }
      this.#parts[this.#parts.length] = new Uint8Array(chunk);
    }
    callback();
  }
  _flush(callback) {
    later([subtleOps.BROTLI, this.#options.quality, this.#options.window, concatBytes(this.#parts)], (answer) => [null, over(answer)], callback,
      (text) => zlibError(text, "brotli"));
  }
}

primordials.ObjectAssign(internal.node.zlibParts, { BrotliCompress, compressing, decompressing });
