// events/sender.js sends the body of a response in chunks from its stream. It never sends more than the requester has
// taken or has allowed.

"use strict";

const { TypeError, TypedArrayPrototypeGetTag, lengthOf, sealedProto, subarray } = primordials;
const { describe, markHandled, readOn, readableState, sendOps, streams } = internal;
const { ReadRequest, acquireReader, streamCancel } = streams;
const { send } = host;
const { BODY } = sendOps;

const MORE = 0;
const END = 1;
const BROKEN = 2;
const WAITS = 3; // there are more bytes than are allowed
const MAX_CHUNK = 256 * 1024;

class Sender {
  run;
  reader;
  allowed; // the total of allowed bytes
  sent = 0;
  piece = null; // a chunk that is not completely sent
  at = 0;
  request = null;
  done;
  busy = false;
  again = false;
  over = false;
  waits = false; // Go knows that there are more bytes than are allowed
  constructor(run, reader, done) {
    this.run = run;
    this.reader = reader;
    this.allowed = run.credit;
    this.done = done;
  }
  take(chunk) {
    if (this.over) return;
    if (TypedArrayPrototypeGetTag(chunk) !== "Uint8Array") {
      const error = new TypeError("a chunk of the body is not a Uint8Array");
      this.broke(error);
      this.drop(error);
      return;
    }
    this.piece = chunk;
    this.at = 0;
    this.pass();
  }
  // pass sends the allowed part of the current piece, then continues to read.
  pass() {
    const { piece } = this;
    const length = lengthOf(piece);
    while (this.at < length) {
      let n = this.allowed - this.sent;
      if (n <= 0) { // grant resumes the send
        if (!this.waits) send(BODY, this.run.id, null, WAITS);
        this.waits = true;
        return;
      }
      this.waits = false;
      if (n > length - this.at) n = length - this.at;
      if (n > MAX_CHUNK) n = MAX_CHUNK;
      send(BODY, this.run.id, subarray(piece, this.at, this.at + n), MORE);
      this.at += n;
      this.sent += n;
    }
    this.piece = null;
    readOn(this);
  }
  grant(upTo) {
    if (upTo > this.allowed) this.allowed = upTo;
    if (this.piece !== null && !this.over) this.pass();
  }
  end() {
    if (this.over) return;
    this.over = true;
    send(BODY, this.run.id, null, END);
    this.done();
  }
  broke(error) {
    if (this.over) return;
    this.over = true;
    const described = describe(error);
    send(BODY, this.run.id, null, BROKEN, described.text, described.stack);
    this.done();
  }
  // drop cancels the source of a broken body. That is the last step, because a cancelled stream ends like a complete
  // one. So does a stream that handler code closes because the request was aborted.
  drop(reason) {
    markHandled(streamCancel(this.reader.stream, reason));
  }
}
sealedProto(Sender);

internal.newSender = (run, stream, done) => {
  const sender = new Sender(run, acquireReader(readableState(stream)), done);
  sender.request = new ReadRequest((chunk) => { sender.take(chunk); }, () => { sender.end(); }, (error) => { sender.broke(error); });
  return sender;
};

// grantCredit handles Go's message with the total number of bytes that are allowed.
internal.grantCredit = (id, upTo) => {
  const run = internal.runById(id);
  if (run !== undefined && run.sender !== null) run.sender.grant(upTo);
};
