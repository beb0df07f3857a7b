// fetch/tcp.js is the TCP connections below cloudflare:sockets and node:net. Go opens them, reads as fast as the reader
// takes, and speaks TLS. A connection belongs to the event that made it and ends with that event.

"use strict";

const {
  List, Map, MapPrototypeDelete, MapPrototypeGet, MapPrototypeSet, Queue, TypeError, lengthOf, sealedProto, subarray,
} = primordials;
const { sendOps } = internal;
const { send } = host;
const { TCP_END, TCP_MORE, TCP_OPEN, TCP_SECURE, TCP_SEND } = sendOps;

const PIECE = 65536; // bytes of one TCP_SEND

const VERIFY_ALL = 0;
const VERIFY_CHAIN = 1;
const VERIFY_NONE = 2;

// Which versions of TLS are spoken: 1.2 and 1.3, unless one of these says otherwise.
const UP_TO_12 = 1;
const FROM_13 = 2;

// TLSOptions are how a connection speaks TLS. The protocols are a list, the versions and what is verified are numbers.
class TLSOptions {
  serverName;
  protocols = new List();
  verify = VERIFY_ALL;
  authorities = ""; // PEM; "" = those that fetch() trusts
  certificate = "";
  key = "";
  versions = 0; // bits
  constructor(serverName) {
    this.serverName = serverName;
  }
}
sealedProto(TLSOptions);

// Handler is what a connection tells. Each is called in the frame of the code that opened it.
class Handler {
  opened; // (facts): the connection is there. facts is a list of strings of TLS, or null
  data; // (bytes)
  ended; // (): the server sends no more
  closed; // (text, code): it has ended. text is null without a failure
  constructor(opened, data, ended, closed) {
    this.opened = opened;
    this.data = data;
    this.ended = ended;
    this.closed = closed;
  }
}
sealedProto(Handler);

const connections = new Map(); // id → Connection

class Connection {
  id = internal.nextRequestId();
  run = internal.acting();
  frame = internal.inheritFrame();
  handler;
  open = true; // Go has it
  ending = false; // nothing more can be sent
  closing = false; // close() was called
  securing = false; // TLS was asked for, and is not spoken yet
  waiting = new Queue(); // what is called when Go has written a frame, or null; one for each frame
  constructor(handler) {
    this.handler = handler;
  }
  command(op, a, b, c, d, e, f, g, h, i, j) {
    internal.speakFor(this.run);
    send(op, this.id, a, b, c, d, e, f, g, h, i, j);
  }
  live() { return this.open && (this.run === null || !this.run.over); }
  // send sends bytes. done is called when they are written, or when the connection has ended.
  send(bytes, done) {
    if (!this.live() || this.ending) {
      done();
      return;
    }
    const n = lengthOf(bytes);
    for (let at = 0; at < n || at === 0; at += PIECE) {
      const last = at + PIECE >= n;
      this.command(TCP_SEND, n <= PIECE ? bytes : subarray(bytes, at, last ? n : at + PIECE));
      this.waiting.push(last ? done : none);
    }
  }
  // end says that this side sends no more.
  end(done) {
    if (!this.live() || this.ending) {
      done();
      return;
    }
    this.ending = true;
    this.command(TCP_END, false, false);
    this.waiting.push(done);
  }
  // close ends the connection when what was sent before is written. destroy ends it now.
  close() {
    if (!this.live() || this.closing) return;
    this.closing = true;
    this.ending = true;
    this.command(TCP_END, true, false);
    this.waiting.push(none);
  }
  destroy() {
    if (this.live()) this.command(TCP_END, true, true);
  }
  more() {
    if (this.live()) this.command(TCP_MORE);
  }
  // secure has the connection speak TLS when what was sent before is written. Its new handler learns the rest.
  secure(options, handler) {
    this.handler = handler;
    this.securing = true;
    if (!this.live()) return;
    const { authorities, certificate, key, protocols, serverName, versions, verify } = options;
    this.command(TCP_SECURE, serverName, protocols, verify, authorities, certificate, key, versions);
  }
  call(what, a, b) {
    internal.callIn(this.frame, what, undefined, [a, b]);
  }
}
sealedProto(Connection);

function none() {}

// openTCP opens a connection. tls is null, or the TLSOptions of one that speaks TLS from the beginning.
internal.openTCP = (hostname, port, tls, handler) => {
  const run = internal.acting();
  if (run === null || run === internal.background()) {
    throw new TypeError("connect: no event runs; a connection belongs to an event: open it in a handler, or in what a handler calls");
  }
  if (run.over) throw new TypeError("connect: the event is over");
  const c = new Connection(handler);
  if (tls === null) c.command(TCP_OPEN, hostname, port, false);
  else {
    const { authorities, certificate, key, protocols, serverName, versions, verify } = tls;
    c.command(TCP_OPEN, hostname, port, true, serverName, protocols, verify, authorities, certificate, key, versions);
  }
  MapPrototypeSet(connections, c.id, c);
  return c;
};
internal.TLSOptions = TLSOptions;
internal.TCPHandler = Handler;
internal.tlsVersions = { __proto__: null, UP_TO_12, FROM_13 };
internal.tlsVerify = { __proto__: null, ALL: VERIFY_ALL, CHAIN: VERIFY_CHAIN, NONE: VERIFY_NONE };

// ---- messages from Go ----

internal.tcpOpened = (id, secured, facts) => {
  const c = MapPrototypeGet(connections, id);
  if (c === undefined || c.securing && !secured) return;
  c.securing = false;
  c.call(c.handler.opened, facts);
};

// tcpData brings a piece, or null when the server sends no more.
internal.tcpData = (id, bytes) => {
  const c = MapPrototypeGet(connections, id);
  if (c === undefined) return;
  if (bytes === null) c.call(c.handler.ended);
  else if (c.securing) c.destroy(); // it came before TLS: whoever sent it is not known
  else c.call(c.handler.data, bytes);
};

internal.tcpSent = (id, bytes, count) => {
  const c = MapPrototypeGet(connections, id);
  if (c === undefined) return;
  for (let i = 0; i < count; i++) {
    const done = c.waiting.shift();
    if (done !== undefined && done !== none) c.call(done);
  }
};

internal.tcpClosed = (id, text, code) => {
  const c = MapPrototypeGet(connections, id);
  if (c === undefined) return;
  MapPrototypeDelete(connections, id);
  c.open = false;
  c.call(c.handler.closed, text, code);
  for (let done = c.waiting.shift(); done !== undefined; done = c.waiting.shift()) c.call(done);
};

internal.onForget((run) => { internal.forgetIn(connections, run); });
