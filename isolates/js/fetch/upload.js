// fetch/upload.js passes the body of a request to Go, piece by piece as Go writes it. A short body goes together with
// the request.

"use strict";

const { List, Queue, TypeError, TypedArrayPrototypeGetTag, lengthOf, sealedProto, subarray } = primordials;
const { concatBytes, markHandled, readOn, readableState, sendOps, sourceBytes, streams } = internal;
const { ReadRequest, acquireReader, streamCancel } = streams;
const { send } = host;
const { UPLOAD } = sendOps;

const SHORT = 16384; // the maximum in bytes of a body that goes with its request; isolates.maxInline
const PIECE = 65536; // isolates.uploadPiece

function tell(f, offset, bytes, last) {
  internal.speakFor(f.run);
  send(UPLOAD, f.id, offset, bytes, last);
}

// BytesUpload is a complete body in memory.
class BytesUpload {
  f;
  bytes;
  kept = true; // it can be sent again
  source = -1; // the source that Go takes it from; -1 = none
  constructor(f, bytes) {
    this.f = f;
    this.bytes = bytes;
  }
  begin(go) { go(); }
  length() { return lengthOf(this.bytes); }
  inline() { return lengthOf(this.bytes) <= SHORT ? this.bytes : null; }
  want(offset) {
    const length = lengthOf(this.bytes);
    const end = length - offset > PIECE ? offset + PIECE : length;
    tell(this.f, offset, subarray(this.bytes, offset, end), end === length);
  }
  cancel() {}
}
sealedProto(BytesUpload);

// StreamUpload is a body that the code reads when Go wants more of it. It reads one chunk ahead.
class StreamUpload {
  f;
  reader;
  failed;
  kept = false;
  source = -1;
  go = null; // the function that sends the request, until the request is sent
  pieces = new Queue();
  fixed; // bytes that it will have; -1 = unknown
  total = 0; // bytes read so far
  at = 0; // the position in the first piece
  sent = 0;
  wanted = false;
  reading = false;
  ended = false;
  busy = false; // readOn uses these two
  again = false;
  request = null;
  constructor(f, stream, failed) {
    this.f = f;
    this.fixed = internal.fixedLengthOf(stream);
    this.reader = acquireReader(readableState(stream));
    this.failed = failed;
    this.request = new ReadRequest((chunk) => { this.take(chunk); }, () => { this.end(); }, (error) => { this.broke(error); });
  }
  // begin calls go once there are bytes to send, or the body has ended without any.
  begin(go) {
    this.go = go;
    this.read();
    this.settle();
  }
  length() { return this.ended ? this.total : this.fixed; }
  inline() {
    if (!this.ended || this.total > SHORT) return null;
    const list = new List();
    for (let piece = this.pieces.shift(); piece !== undefined; piece = this.pieces.shift()) list[list.length] = piece;
    return concatBytes(list);
  }
  want() {
    this.wanted = true;
    this.settle();
  }
  cancel(reason) {
    if (this.ended) return;
    this.ended = true;
    this.pieces.clear();
    markHandled(streamCancel(this.reader.stream, reason));
  }
  read() {
    if (this.reading || this.ended) return;
    this.reading = true;
    readOn(this);
  }
  take(chunk) {
    this.reading = false;
    if (this.ended) return;
    if (TypedArrayPrototypeGetTag(chunk) !== "Uint8Array") {
      const error = new TypeError("a chunk of the body is not a Uint8Array");
      this.cancel(error);
      this.failed(error);
      return;
    }
    const length = lengthOf(chunk);
    if (length > 0) this.pieces.push(chunk);
    this.total += length;
    if (length === 0 || (this.go !== null && this.total <= SHORT)) this.read();
    this.settle();
  }
  end() {
    this.reading = false;
    this.ended = true;
    this.settle();
  }
  broke(error) {
    this.reading = false;
    if (this.ended) return;
    this.ended = true;
    this.failed(error);
  }
  // settle does the next step that is possible now. During a read it does nothing, because readOn continues.
  settle() {
    if (this.busy) return;
    if (this.go === null) {
      this.pump();
    } else if (this.ended || this.pieces.length > 0) {
      const { go } = this;
      this.go = null;
      go();
    }
  }
  pump() {
    while (this.wanted) {
      if (this.pieces.length > 0) this.pass();
      else if (this.ended) {
        this.wanted = false;
        tell(this.f, this.sent, null, true);
      } else {
        this.read();
        if (this.reading) return;
      }
    }
  }
  pass() {
    const piece = this.pieces.peek();
    const length = lengthOf(piece);
    const end = length - this.at > PIECE ? this.at + PIECE : length;
    this.wanted = false;
    tell(this.f, this.sent, subarray(piece, this.at, end), false);
    this.sent += end - this.at;
    this.at = end;
    if (end < length) return;
    this.pieces.shift();
    this.at = 0;
  }
}
sealedProto(StreamUpload);

// SourceUpload is a body that Go takes from its source.
class SourceUpload {
  source;
  size;
  kept = false;
  constructor(source, size) {
    this.source = source;
    this.size = size;
  }
  begin(go) { go(); }
  length() { return this.size; }
  inline() { return null; }
  want() {}
  cancel() {}
}
sealedProto(SourceUpload);

// newUpload returns the upload of the body of a request's state for the fetch f, or null when there is no body.
// failed gets the error of a broken stream.
internal.newUpload = (f, s, failed) => {
  if (s.stream !== null) {
    const length = internal.fixedLengthOf(s.stream);
    const source = f.run === null ? null : internal.takeSource(s.stream, f.run);
    return source === null ? new StreamUpload(f, s.stream, failed) : new SourceUpload(source.id, length);
  }
  if (s.source === null) return null;
  s.used = true;
  return new BytesUpload(f, sourceBytes(s.source, false));
};
