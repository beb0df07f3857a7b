// node/zlib_parts.js has the work of node:zlib that a call waits for. What is compressed goes to Go in parts, each with the
// end of what came before: nothing in Go lasts from one part to the next. What is decompressed goes to Go at once.

"use strict";

const { List, TypedArrayPrototypeSet, Uint8Array, lengthOf, sealedProto, subarray } = primordials;
const { concatBytes, subtleOps } = internal;
const { over } = internal.node.builtin("buffer") && internal.node.bufferParts;
const { tooLarge, zlibError } = internal.node.zlibParts;
const { PIECE, asked, inPieces } = internal.nodeModule("work");

const WINDOW = 32768;
const NO_SUM = 0;
const CRC = 1;
const ADLER = 2;
const MOST_NOW = 67108864; // as in isolates/offload/subtle
const BROTLI_MEMORY = 25165824;
const LITTLE = 2097152;

class Deflater {
  level;
  kind; // of the checksum, which tells the format
  sum;
  before = null; // the end of what was compressed
  total = 0;
  begun = false;
  constructor(kind, level) {
    this.kind = kind;
    this.level = level;
    this.sum = kind === ADLER ? 1 : 0;
  }
  args(bytes, last) {
    return [subtleOps.DEFLATE_PART, this.level === -1 ? 6 : this.level, this.before, bytes, this.kind, this.sum, last];
  }
  // took takes Go's answer for a part, and returns bytes of the stream.
  took(answer, bytes, last) {
    const s = answer[1];
    this.sum = ((s[0] << 24) | (s[1] << 16) | (s[2] << 8) | s[3]) >>> 0;
    const n = lengthOf(bytes);
    this.total += n;
    if (!last) this.remember(bytes, n);
    const parts = new List();
    if (!this.begun) parts[0] = this.head();
    this.begun = true;
    parts[parts.length] = answer[0];
    if (last) parts[parts.length] = this.tail();
    return concatBytes(parts);
  }
  remember(bytes, n) {
    if (n >= WINDOW) this.before = new Uint8Array(subarray(bytes, n - WINDOW, n));
    else if (n > 0) {
      const had = this.before === null ? 0 : lengthOf(this.before);
      const keep = had + n > WINDOW ? WINDOW - n : had;
      const next = new Uint8Array(keep + n);
      if (keep > 0) TypedArrayPrototypeSet(next, subarray(this.before, had - keep, had), 0);
      TypedArrayPrototypeSet(next, bytes, keep);
      this.before = next;
    }
  }
  head() {
    if (this.kind === NO_SUM) return new Uint8Array(0);
    if (this.kind === CRC) {
      const head = new Uint8Array(10);
      head[0] = 0x1f;
      head[1] = 0x8b;
      head[2] = 8;
      head[8] = this.level === 9 ? 2 : this.level === 1 ? 4 : 0;
      head[9] = 3;
      return head;
    }
    const head = new Uint8Array(2);
    head[0] = 0x78;
    head[1] = this.level === -1 || this.level === 6 ? 0x9c : this.level > 6 ? 0xda : this.level > 1 ? 0x5e : 0x01;
    return head;
  }
  tail() {
    if (this.kind === NO_SUM) return new Uint8Array(0);
    const out = new Uint8Array(this.kind === CRC ? 8 : 4);
    for (let i = 0; i < 4; i++) out[this.kind === CRC ? i : 3 - i] = this.sum >>> (8 * i);
    if (this.kind === CRC) for (let i = 0; i < 4; i++) out[4 + i] = (this.total % 4294967296) >>> (8 * i);
    return out;
  }
}
sealedProto(Deflater);

const empty = new Uint8Array(0);

// answered returns Go's answer, or throws.
function answered(answer, format) {
  if (typeof answer === "string") throw zlibError(answer, format);
  return answer;
}

function deflateNow(bytes, kind, options) {
  const deflater = new Deflater(kind, options.level);
  const parts = new List();
  let total = 0;
  const n = lengthOf(bytes);
  const part = (piece, last) => {
    const out = deflater.took(answered(asked(deflater.args(piece, last)), "deflate"), piece, last);
    total += lengthOf(out);
    if (total > options.most) throw tooLarge(options.most);
    parts[parts.length] = out;
  };
  if (n === 0) part(empty, true);
  let at = 0;
  inPieces(bytes, (piece) => { part(piece, (at += PIECE) >= n); });
  return over(parts.length === 1 ? parts[0] : concatBytes(parts));
}

// likely guesses how long the content is: a gzip ends with its length.
function likely(bytes, format) {
  const n = lengthOf(bytes);
  if (n >= 18 && (format === "gunzip" || format === "unzip") && bytes[0] === 0x1f) {
    const said = bytes[n - 4] + bytes[n - 3] * 256 + bytes[n - 2] * 65536 + bytes[n - 1] * 16777216;
    if (said >= n / 2 && said <= 1032 * n) return said;
  }
  return 4 * n;
}

// charged allocates what Go takes for its work, so that the worker is charged for it meanwhile. A little is no matter.
function charged(n, work) {
  if (n <= LITTLE) return work();
  let room;
  try {
    room = new Uint8Array(n);
  } catch {
    throw tooLarge(n);
  }
  const answer = work();
  primordials.ArrayBufferPrototypeTransfer(primordials.TypedArrayPrototypeGetBuffer(room), 0);
  return answer;
}

function inflateNow(bytes, format, options) {
  const most = options.most < MOST_NOW ? options.most : MOST_NOW;
  const { partly } = options;
  if (lengthOf(bytes) > 4190000) throw tooLarge("4190000 compressed, which what has a callback takes,");
  let limit = likely(bytes, format);
  if (limit < 16384) limit = 16384;
  for (;;) {
    if (limit > most) limit = most;
    const now = limit;
    const answer = charged(2 * now + (format === "brotli" ? BROTLI_MEMORY : 0),
      () => asked([subtleOps.INFLATE_ALL, format, bytes, now, now, partly]));
    if (answer !== false) return over(answered(answer, format));
    if (limit === most) throw tooLarge(most);
    limit *= 4;
  }
}

function brotliNow(bytes, options) {
  if (lengthOf(bytes) > 1048576) throw tooLarge("1048576 at once: what has a callback takes more,");
  const out = answered(charged(BROTLI_MEMORY, () => asked([subtleOps.BROTLI, options.quality, options.window, bytes])), "brotli");
  if (lengthOf(out) > options.most) throw tooLarge(options.most);
  return over(out);
}

primordials.ObjectAssign(internal.node.zlibParts, { ADLER, CRC, Deflater, NO_SUM, answered, brotliNow, deflateNow, empty, inflateNow });
