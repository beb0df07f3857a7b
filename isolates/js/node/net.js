// node/net.js is node:net: sockets of clients. A worker has no servers.

"use strict";

const {
  ArrayIsArray, ArrayPrototypePop, ArrayPrototypeSlice, Error, Number, NumberIsInteger, RegExpPrototypeExec,
  StringPrototypeIncludes, StringPrototypeSlice, lengthOf, sealedProto,
} = primordials;
const { TCPHandler, liveBytes } = internal;
const { builtin, callLater, checks, coded, put, wrongType } = internal.node;
const { Duplex } = builtin("stream");
const { Buffer } = builtin("buffer");
const EventEmitter = builtin("events");
const timers = builtin("timers");
const { over } = internal.node.bufferParts;
const { isIP, isIPv4, isIPv6, portOf } = internal.nodeModule("address");

// ---- sockets ----

// failure makes the error of a socket to a host, as Node writes it.
function failure(host, port, text, code, open) {
  const known = code === "" ? "ECONNRESET" : code;
  let error;
  if (known === "ENOTFOUND" || known === "EAI_AGAIN") {
    error = coded(Error, known, `getaddrinfo ${known} ${host}`);
    put(error, { errno: known === "ENOTFOUND" ? -3008 : -3001, syscall: "getaddrinfo", hostname: host });
  } else if (StringPrototypeSlice(known, 0, 1) === "E" && !StringPrototypeIncludes(known, "_") && known !== "EPROTO") {
    const what = open ? "read" : "connect";
    const where = open ? "" : ` ${host}:${port}`;
    error = coded(Error, known, known === "EACCES" || code === "" ? text : `${what} ${known}${where}`);
    put(error, { errno: errnos[known] ?? -4094, syscall: what });
    if (!open) put(error, { address: host, port });
  } else error = coded(Error, known, text);
  return error;
}

const errnos = {
  __proto__: null, EACCES: -13, EADDRNOTAVAIL: -99, ECONNREFUSED: -111, ECONNRESET: -104, EHOSTUNREACH: -113, ENETUNREACH: -101,
  EPIPE: -32, ETIMEDOUT: -110,
};

// normalArgs reads the arguments of connect(): options, or a port and a host, and a callback.
function normalArgs(args) {
  let list = ArrayPrototypeSlice(args);
  if (ArrayIsArray(list[0])) list = ArrayPrototypeSlice(list[0]);
  const callback = typeof list[list.length - 1] === "function" ? ArrayPrototypePop(list) : null;
  const [first, second] = list;
  if (typeof first === "object" && first !== null) return [first, callback];
  if (typeof first === "string" && RegExpPrototypeExec(/^[0-9]+$/, first) === null) return [{ path: first }, callback];
  return [{ port: first, host: typeof second === "string" ? second : undefined }, callback];
}

function none() {}

// TLS is what node:tls adds to a socket.
class TLS {
  options; // (options of connect(), host): how the socket speaks TLS
  opened; // (facts, what emits): the connection speaks TLS. It says whether the socket may be written to
  constructor(options, opened) {
    this.options = options;
    this.opened = opened;
  }
}
sealedProto(TLS);

let parts; // what node:tls needs of sockets. Guests have no connection, no handler and nothing else of the runtime

class Socket extends Duplex {
  connecting = false;
  bytesRead = 0;
  timeout = 0;
  #host = undefined;
  #port = undefined;
  #sent = 0;
  #connection = null;
  #open = false;
  #timer = null;
  #tls = null; // the TLS of a socket of node:tls
  #known = true; // the server is who it should be: node:tls checks that before anything is sent
  #held = null; // (failed): a write, or the end, until then
  static {
    parts = {
      __proto__: null,
      addTLS(socket, options, opened) {
        socket.#tls = new TLS(options, opened);
        socket.#known = false;
      },
      over(socket, other, tls) { socket.#over(other, tls); },
      hostOf(socket) { return socket.#host; },
    };
  }
  constructor(options = undefined) {
    if (typeof options === "number") throw coded(Error, "ERR_METHOD_NOT_IMPLEMENTED", "a worker has no file descriptors");
    super({
      ...options, allowHalfOpen: !!options?.allowHalfOpen, autoDestroy: true, emitClose: true, decodeStrings: true, objectMode: false,
      readableObjectMode: false, writableObjectMode: false, read: undefined, write: undefined,
    });
    const { signal } = options ?? {};
    if (signal) builtin("stream").addAbortSignal(signal, this);
  }
  connect(...args) {
    const [options, callback] = normalArgs(args);
    if (options.path) throw coded(Error, "ERR_METHOD_NOT_IMPLEMENTED", "a worker has no Unix sockets: connect to a host and a port");
    if (options.host !== undefined && options.host !== null) checks.string(options.host, "options.host");
    const port = portOf(options.port);
    this.#host = options.host || "localhost";
    this.#port = port;
    if (callback !== null) this.once("connect", callback);
    this.connecting = true;
    if (options.timeout) this.setTimeout(options.timeout);
    const tls = this.#tls === null ? null : this.#tls.options(options, this.#host);
    this.#connection = internal.openTCP(this.#host, port, tls, this.#handler());
    return this;
  }
  #handler() {
    return new TCPHandler((facts) => { this.#opened(facts); }, (bytes) => { this.#data(bytes); }, () => { this.#end(); },
      (text, code) => { this.#closed(text, code); });
  }
  #opened(facts) {
    if (this.destroyed) return;
    this.connecting = false;
    this.#open = true;
    this.#active();
    if (this.#tls === null) this.#connected();
    else if (!this.#tls.opened(facts, () => { this.#connected(); }) || this.destroyed) return;
    this.#release(undefined);
  }
  #connected() {
    this.emit("connect");
    this.emit("ready");
  }
  // #release does what was held, or fails it.
  #release(failed) {
    const held = this.#held;
    this.#known = true;
    this.#held = null;
    if (held !== null) held(failed);
  }
  #data(bytes) {
    if (this.destroyed) return;
    this.bytesRead += lengthOf(bytes);
    this.#active();
    this.push(over(bytes));
  }
  #end() {
    if (this.destroyed || this.readableEnded) return;
    this.push(null);
    if (this.readableLength === 0) this.read(0);
  }
  #closed(text, code) {
    const open = this.#open;
    this.#open = false;
    if (this.destroyed) return;
    if (text !== null) {
      this.destroy(failure(this.#host, this.#port, text, code, open));
      return;
    }
    this.#release(undefined);
    this.#end();
    if (!this.writableEnded) this.end();
  }
  // #take gives the connection to a socket that speaks TLS over it.
  #take(by) {
    const connection = this.#connection;
    this.#connection = null;
    this.#open = false;
    this.connecting = false;
    this.#stopTimer();
    by.once("close", () => { this.destroy(); });
    return connection;
  }
  // #over has the socket speak TLS over the connection of another one.
  #over(socket, tls) {
    this.#host = socket.#host;
    this.#port = socket.#port;
    this.#connection = socket.#take(this);
    if (this.#connection === null) {
      callLater(() => { this.destroy(coded(Error, "ERR_SOCKET_CLOSED", "Socket is closed")); });
      return;
    }
    this.connecting = true;
    this.#connection.secure(tls, this.#handler());
    if (!this.#connection.live()) callLater(() => { this.#closed("the connection had ended", "ECONNRESET"); });
  }
  _read() {
    if (this.#connection !== null) this.#connection.more();
  }
  // Node's streams call the next three. What a socket of TLS writes waits until its server is known.
  _write(chunk, encoding, callback) {
    this.#sent += chunk.length;
    this.#write(liveBytes(chunk), callback);
  }
  #write(bytes, callback) {
    if (!this.#known) {
      this.#held = (failed) => { failed === undefined ? this.#write(bytes, callback) : callback(failed); };
      return;
    }
    this.#active();
    if (this.#connection === null || !this.#connection.open) {
      callback(coded(Error, this.#connection === null ? "ERR_SOCKET_CLOSED" : "EPIPE", this.#connection === null ? "Socket is closed" : "write EPIPE"));
      return;
    }
    this.#connection.send(bytes, () => {
      this.#active();
      callback();
    });
  }
  _writev(chunks, callback) {
    const list = [];
    for (let i = 0; i < chunks.length; i++) list[i] = chunks[i].chunk;
    this._write(Buffer.concat(list), "buffer", callback);
  }
  _final(callback) { this.#final(callback); }
  #final(callback) {
    if (!this.#known) this.#held = (failed) => { failed === undefined ? this.#final(callback) : callback(failed); };
    else if (this.#connection === null) callback();
    else this.#connection.end(() => { callback(); });
  }
  _destroy(error, callback) {
    this.connecting = false;
    this.#stopTimer();
    if (this.#connection !== null) {
      if (error === null || error === undefined) this.#connection.close();
      else this.#connection.destroy();
    }
    callback(error);
    this.#release(coded(Error, "ERR_SOCKET_CLOSED_BEFORE_CONNECTION", "Socket closed before the connection was established"));
  }
  destroySoon() {
    if (this.writable) this.end();
    if (this.writableFinished) this.destroy();
    else this.once("finish", this.destroy);
  }
  resetAndDestroy() { return this.destroy(); }
  #active() {
    if (this.#timer !== null) this.#timer.refresh();
  }
  #stopTimer() {
    if (this.#timer !== null) this.#timer.close();
    this.#timer = null;
  }
  setTimeout(delay, callback = undefined) {
    checks.number(delay, "msecs", 0);
    if (callback !== undefined) checks.function(callback, "callback");
    this.timeout = delay;
    this.#stopTimer();
    if (delay > 0 && !this.destroyed) this.#timer = timers.setTimeout(() => { this.#expired(); }, delay);
    if (callback !== undefined) delay > 0 ? this.once("timeout", callback) : this.removeListener("timeout", callback);
    return this;
  }
  #expired() {
    this.#timer = null;
    this.emit("timeout");
    if (this.timeout > 0 && this.#timer === null && !this.destroyed) {
      this.#timer = timers.setTimeout(() => { this.#expired(); }, this.timeout);
    }
  }
  setNoDelay() { return this; }
  setKeepAlive() { return this; }
  ref() { return this; }
  unref() { return this; }
  address() { return {}; }
  get pending() { return !this.#open; }
  get bytesWritten() { return this.#sent + this.writableLength; }
  get bufferSize() { return this.writableLength; }
  get remoteAddress() { return this.#open && isIP(this.#host) !== 0 ? this.#host : undefined; }
  get remotePort() { return this.#open ? this.#port : undefined; }
  get remoteFamily() {
    const address = this.remoteAddress;
    return address === undefined ? undefined : `IPv${isIP(address)}`;
  }
  get localAddress() { return undefined; }
  get localPort() { return undefined; }
  get localFamily() { return undefined; }
  get readyState() {
    if (this.connecting) return "opening";
    if (this.readable && this.writable) return this.#open ? "open" : "closed";
    if (this.readable) return "readOnly";
    return this.writable ? "writeOnly" : "closed";
  }
}

const noServer = () => coded(Error, "ERR_METHOD_NOT_IMPLEMENTED", "a worker has no servers: its handlers answer events");

class Server extends EventEmitter {
  listening = false;
  constructor(options = undefined, listener = undefined) {
    super();
    const on = typeof options === "function" ? options : listener;
    if (on) this.on("connection", on);
  }
  listen() { throw noServer(); }
  address() { return null; }
  close(callback = undefined) {
    const error = coded(Error, "ERR_SERVER_NOT_RUNNING", "Server is not running.");
    if (typeof callback === "function") callLater(callback, error);
    return this;
  }
  getConnections(callback) { callLater(callback, null, 0); }
  ref() { return this; }
  unref() { return this; }
}

let selects = true;
let selectsWithin = 250;

function connect(...args) {
  const [options, callback] = normalArgs(args);
  return new Socket(options).connect(options, callback ?? none);
}

internal.node.net = { __proto__: null, normalArgs, noServer, parts };
const constructed = (Class) => new Proxy(Class, {
  __proto__: null,
  apply: (_, self, args) => primordials.ReflectConstruct(Class, args), // Node's can be called without new
});
const { Proxy } = primordials;
internal.node.callable = constructed;
const PublicSocket = constructed(Socket);
primordials.ObjectDefineProperty(Socket.prototype, "constructor",
  { __proto__: null, value: PublicSocket, writable: true, enumerable: false, configurable: true });

internal.nodeModules.net = put({}, {
  isIP, isIPv4, isIPv6, Socket: PublicSocket, Stream: PublicSocket, Server: constructed(Server), connect, createConnection: connect,
  createServer(options, listener) { return new Server(options, listener); },
  getDefaultAutoSelectFamily() { return selects; },
  setDefaultAutoSelectFamily(value) {
    checks.boolean(value, "value");
    selects = value;
  },
  getDefaultAutoSelectFamilyAttemptTimeout() { return selectsWithin; },
  setDefaultAutoSelectFamilyAttemptTimeout(value) {
    checks.integer(value, "value", 1);
    selectsWithin = value < 10 ? 10 : value;
  },
  _normalizeArgs(args) { return normalArgs(args); },
});
