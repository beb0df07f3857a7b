// fetch/sockets.js is cloudflare:sockets: connect(), and sockets with streams of bytes.

"use strict";

const {
  Error, Number, RegExpPrototypeExec, StringPrototypeLastIndexOf, StringPrototypeSlice, TypeError, lengthOf, sealedProto,
} = primordials;
const {
  TCPHandler, TLSOptions, TOKEN, defineInterface, illegalConstructor, illegalInvocation, isBufferSource, isObject, liveBytes, markHandled,
  newCapability, openTCP, requireArguments, streams, toUSVString, writableHandle,
} = internal;
const { WRITABLE, WritableController, WritableState, setUpWritable, writableControllerError } = streams;

const WINDOW = 262144; // bytes that are sent before a write waits
const modes = { __proto__: null, off: true, on: true, starttls: true };
const REFUSED = "proxy request failed, cannot connect to the specified address";
const LOST = "Network connection lost.";

// Side is a socket's part of a connection. After startTls() another socket has the connection.
class Side {
  hostname;
  port;
  mode;
  halfOpen;
  connection = null;
  isOpen = false;
  upgraded = false;
  closing = false;
  readable;
  feed;
  writable = new WritableState();
  unsent = 0; // bytes that were sent and that Go has not written
  opened = newCapability();
  closed = newCapability();
  constructor(hostname, port, mode, halfOpen) {
    this.hostname = hostname;
    this.port = port;
    this.mode = mode;
    this.halfOpen = halfOpen;
    markHandled(this.opened.promise);
    markHandled(this.closed.promise);
    this.feed = internal.newFeed(() => {}, () => { this.pull(); });
    this.readable = this.feed.stream;
    setUpWritable(this.writable, new WritableController(), undefined, (chunk) => this.write(chunk), () => this.end(),
      () => this.abort(), 1, undefined);
  }
  handler() {
    return new TCPHandler(() => { this.open(); }, (bytes) => { this.data(bytes); }, () => { this.eof(); },
      (text) => { this.over(text); });
  }
  open() {
    this.isOpen = true;
    this.opened.resolve({ remoteAddress: joined(this.hostname, this.port), localAddress: undefined });
  }
  // pull is called for each chunk that the reader wants. Go sends ahead as much as it may without being asked.
  pull() {
    if (this.connection !== null) this.connection.more();
  }
  data(bytes) {
    if (this.feed.isOpen()) this.feed.push(bytes);
  }
  eof() {
    if (this.feed.isOpen()) this.feed.close();
    if (!this.halfOpen) this.connection.close();
  }
  async write(chunk) {
    if (!isBufferSource(chunk)) {
      throw new TypeError(typeof chunk === "string" ? "a chunk is a string, not bytes: encode it with TextEncoder"
        : "a chunk is neither an ArrayBuffer nor a view of one");
    }
    const bytes = liveBytes(chunk);
    const n = lengthOf(bytes);
    if (n === 0) {
      this.wrote();
      return;
    }
    if (!this.connection.open) throw new TypeError(LOST);
    const sent = newCapability();
    const full = (this.unsent += n) > WINDOW;
    this.connection.send(bytes, () => {
      this.unsent -= n;
      if (full) this.sent(sent);
    });
    if (full) await sent.promise;
    else this.wrote();
  }
  sent(capability) {
    capability.resolve(undefined);
    this.wrote();
  }
  // wrote ends the socket after the last write, if close() was called.
  wrote() {
    if (this.closing && this.writable.writes.length === 0) this.finish();
  }
  async end() {
    const done = newCapability();
    this.connection.end(() => { done.resolve(undefined); });
    await done.promise;
  }
  async abort() {
    this.connection.close();
  }
  close() {
    if (this.closing) return;
    this.closing = true;
    if (this.writable.inFlightWrite === null && this.writable.writes.length === 0) this.finish();
  }
  finish() {
    if (!this.upgraded) this.connection.close();
  }
  over(text) {
    if (text === null) {
      this.settle(null);
      return;
    }
    this.settle(new Error(this.isOpen ? `${LOST} ${text}` : `${REFUSED}: ${text}`));
  }
  // settle ends the streams, with an error or without.
  settle(error) {
    if (error !== null) {
      this.opened.reject(error);
      this.closed.reject(error);
      if (this.feed.isOpen()) this.feed.error(error);
    } else {
      this.opened.resolve({ remoteAddress: undefined, localAddress: undefined });
      this.closed.resolve(undefined);
      if (this.feed.isOpen()) this.feed.close();
    }
    if (this.writable.state === WRITABLE) {
      writableControllerError(this.writable.controller, error ?? new TypeError("This WritableStream has been closed."));
    }
  }
}
sealedProto(Side);

function joined(hostname, port) { return `${hostname}:${port}`; }

const portForm = /^[0-9]{1,5}$/;
const hostForm = /^(?:[^\s/?#@:[\]]+|\[[0-9A-Fa-f:.]+\])$/;

// readAddress reads "host:port", or an object with both.
function readAddress(value) {
  let host;
  let port;
  if (typeof value === "object" && value !== null) {
    host = toUSVString(value.hostname);
    port = `${value.port}`;
  } else {
    const text = toUSVString(value);
    const at = StringPrototypeLastIndexOf(text, ":");
    if (at === -1 || text[text.length - 1] === "]") throw new TypeError("Specified address is missing port.");
    host = StringPrototypeSlice(text, 0, at);
    port = StringPrototypeSlice(text, at + 1);
  }
  const n = Number(port);
  if (RegExpPrototypeExec(hostForm, host) === null && RegExpPrototypeExec(hostForm, `[${host}]`) === null ||
      RegExpPrototypeExec(portForm, port) === null || n < 1 || n > 65535) {
    throw new TypeError("Specified address could not be parsed.");
  }
  return [host[0] === "[" ? StringPrototypeSlice(host, 1, host.length - 1) : host, n];
}

let sideOf;

class Socket {
  #side;
  constructor(token, side) {
    if (token !== TOKEN) throw illegalConstructor();
    this.#side = side;
  }
  static {
    sideOf = (value) => {
      if (!isObject(value) || !(#side in value)) throw illegalInvocation("Socket");
      return value.#side;
    };
  }
  get readable() { return sideOf(this).readable; }
  get writable() { return writableHandle(sideOf(this).writable); }
  get closed() { return sideOf(this).closed.promise; }
  get opened() { return sideOf(this).opened.promise; }
  get upgraded() { return sideOf(this).upgraded; }
  get secureTransport() { return sideOf(this).mode; }
  close() {
    const side = sideOf(this);
    side.close();
    return side.closed.promise;
  }
  startTls(options = undefined) {
    const side = sideOf(this);
    if (side.mode !== "starttls") {
      throw new TypeError(side.mode === "on" ? "Cannot startTls on a TLS socket."
        : "The `secureTransport` socket option must be set to 'starttls' for startTls to be used.");
    }
    const name = isObject(options) ? options.expectedServerHostname : undefined;
    const server = name === undefined ? side.hostname : toUSVString(name);
    if (server === "") throw new TypeError("expectedServerHostname is empty: the certificate would be for any server.");
    if (side.upgraded || side.closing) throw new TypeError("startTls can only be called once."); // the name's toString() may have
    const next = new Side(side.hostname, side.port, "on", side.halfOpen);
    const tls = new TLSOptions(server);
    side.upgraded = true;
    next.connection = side.connection;
    next.connection.secure(tls, next.handler());
    if (!next.connection.open) next.over("the connection had ended");
    side.settle(null);
    return new Socket(TOKEN, next);
  }
}
defineInterface(Socket, "Socket", true);

const operations = {
  connect(address, options = undefined) {
    requireArguments(arguments.length, 1, "connect");
    const [hostname, port] = readAddress(address);
    let mode = "off";
    let halfOpen = false;
    if (isObject(options)) {
      const { allowHalfOpen, secureTransport } = options;
      if (secureTransport !== undefined) mode = toUSVString(secureTransport);
      halfOpen = !!allowHalfOpen;
    }
    if (modes[mode] !== true) throw new TypeError(`Unsupported value in secureTransport socket option: ${mode}`);
    const side = new Side(hostname, port, mode, halfOpen);
    side.connection = openTCP(hostname, port, mode === "on" ? new TLSOptions(hostname) : null, side.handler());
    return new Socket(TOKEN, side);
  },
};

internal.socketsExports = () => ["connect", operations.connect];
