// node/http_server.js is the server of node:http. It listens to no port: cloudflare:node gives it the requests of fetch
// events, by the number of the port.

"use strict";

const {
  Error, Map, MapPrototypeDelete, MapPrototypeGet, MapPrototypeHas, MapPrototypeSet, NumberIsInteger, Promise, PromiseReject, RangeError,
  ReflectConstruct, StringPrototypeIndexOf, StringPrototypeSlice, StringPrototypeStartsWith, TypeError, lengthOf,
} = primordials;
const { builtin, callLater, checks, coded, http, wrongType } = internal.node;
const EventEmitter = builtin("events");
const { Connection, IncomingMessage, OutgoingMessage, STATUS_CODES, bodyLength, fill, isWrongText, out, setAll } = http;

class ServerResponse extends OutgoingMessage {
  statusCode = 200;
  statusMessage = undefined;
  req;
  #answer = null; // {resolve, reject} of the Response
  #status = 0; // that is sent, with its text; 0: there is none yet. A guest may change statusCode
  #text = "";
  constructor(req, options = undefined) {
    super(options);
    this.req = req;
  }
  static {
    // answerWith says who waits for the Response of a message.
    http.answerWith = (message, answer) => {
      message.#answer = answer;
      out.setUp(message, (bytes, stream) => { message.#send(bytes, stream); }, (error) => { message.#left(error); });
    };
  }
  _implicitHeader() { this.writeHead(this.statusCode); }
  writeHead(status, reason = undefined, headers = undefined) {
    if (this.headersSent) throw coded(Error, "ERR_HTTP_HEADERS_SENT", "Cannot write headers after they are sent to the client");
    const code = status | 0;
    if (code < 200 || code > 599) throw coded(RangeError, "ERR_HTTP_INVALID_STATUS_CODE", `Invalid status code: ${status}`);
    if (typeof reason === "string") this.statusMessage = reason;
    else {
      this.statusMessage ??= STATUS_CODES[code] || "unknown";
      headers ??= reason;
    }
    const text = `${this.statusMessage}`;
    if (isWrongText(text)) throw coded(TypeError, "ERR_INVALID_CHAR", "Invalid character in statusMessage");
    if (headers) setAll(this, headers);
    this.statusCode = code;
    this.#status = code;
    this.#text = text;
    out.seal(this, this.req?.method === "HEAD" || internal.isNullBodyStatus(code));
    return this;
  }
  writeHeader(...args) { return this.writeHead(...args); }
  #send(bytes, stream) {
    const answer = this.#answer;
    if (this.#status === 0) { // a class of the guest's sends its head without writeHead()
      this.#answer = null;
      answer.reject(coded(Error, "ERR_HTTP_INVALID_STATUS_CODE", "the response has no status: writeHead() was not called"));
      return;
    }
    const list = out.list(this);
    if (stream !== null || bytes !== null) internal.listDelete(list, "content-length");
    const s = new internal.ResponseState(this.#status, null, bytes);
    s.statusText = this.#text;
    s.headers = internal.newHeaders(list, false);
    s.stream = stream;
    const length = stream === null ? -1 : bodyLength(this.getHeader("content-length"));
    if (length >= 0) internal.setFixedLength(stream, length);
    this.#answer = null;
    answer.resolve(internal.newResponse(s));
  }
  #left(error) {
    const answer = this.#answer;
    this.#answer = null;
    if (answer !== null) answer.reject(error ?? coded(Error, "ECONNRESET", "the server has ended the request without a response"));
  }
  assignSocket(socket) { this.socket = socket; }
  detachSocket() { this.socket = null; }
  writeContinue(callback) { later(callback); }
  writeProcessing(callback) { later(callback); }
  writeEarlyHints(hints, callback) {
    checks.object(hints, "hints");
    later(callback);
  }
}

function later(callback) {
  if (typeof callback === "function") callLater(callback);
}

// ---- servers ----

const ports = new Map(); // port → Server
let free = 49152; // where ports for listen(0) begin

class Server extends EventEmitter {
  listening = false;
  timeout = 0;
  keepAliveTimeout = 5000;
  headersTimeout = 60000;
  requestTimeout = 300000;
  maxHeadersCount = null;
  maxRequestsPerSocket = 0;
  #port = 0;
  #kinds; // the classes of messages
  constructor(options = undefined, listener = undefined) {
    super();
    if (typeof options === "function") {
      listener = options;
      options = undefined;
    } else if (options !== undefined && options !== null) checks.object(options, "options");
    this.#kinds = {
      __proto__: null, IncomingMessage: options?.IncomingMessage ?? IncomingMessage, ServerResponse: options?.ServerResponse ?? ServerResponse,
    };
    if (listener) this.on("request", listener);
  }
  static {
    http.isServer = (value) => internal.isObject(value) && #port in value;
    http.portOf = (server) => (server.listening ? server.#port : 0);
    http.messages = (server, socket) => {
      const req = ReflectConstruct(server.#kinds.IncomingMessage, [socket]);
      return { __proto__: null, req, res: ReflectConstruct(server.#kinds.ServerResponse, [req]) };
    };
  }
  listen(...args) {
    const callback = args[args.length - 1];
    if (this.listening) throw coded(Error, "ERR_SERVER_ALREADY_LISTEN", "Listen method has been called more than once without closing.");
    const port = listenPort(args[0]);
    if (typeof callback === "function") this.once("listening", callback);
    if (port !== 0 && MapPrototypeHas(ports, port)) {
      const error = coded(Error, "EADDRINUSE", `listen EADDRINUSE: address already in use :::${port}`);
      callLater(() => { this.emit("error", error); });
      return this;
    }
    this.#port = port;
    if (port === 0) {
      while (MapPrototypeHas(ports, free)) free++;
      this.#port = free++;
    }
    MapPrototypeSet(ports, this.#port, this);
    this.listening = true;
    callLater(() => { if (this.listening) this.emit("listening"); });
    return this;
  }
  address() { return this.listening ? { address: "::", family: "IPv6", port: this.#port } : null; }
  close(callback = undefined) {
    if (typeof callback === "function") {
      const closed = this.listening;
      this.once("close", () => { callback(closed ? undefined : coded(Error, "ERR_SERVER_NOT_RUNNING", "Server is not running.")); });
    }
    if (this.listening) MapPrototypeDelete(ports, this.#port);
    this.listening = false;
    callLater(() => { this.emit("close"); });
    return this;
  }
  closeAllConnections() {}
  closeIdleConnections() {}
  getConnections(callback) { callLater(callback, null, 0); }
  setTimeout(delay, callback = undefined) {
    if (typeof callback === "function") this.on("timeout", callback);
    return this;
  }
  ref() { return this; }
  unref() { return this; }
}

// listenPort reads the first argument of listen(): a port, options with one, or nothing.
function listenPort(first) {
  let port = first;
  if (typeof first === "object" && first !== null) {
    if (first.path !== undefined) throw http.notHere("server of a Unix socket", "listen to a number");
    port = first.port;
  }
  if (port === undefined || port === null || typeof port === "function") return 0;
  if (typeof port === "string" && port !== "" && NumberIsInteger(+port)) port = +port;
  if (typeof port === "string") throw http.notHere("server of a Unix socket", "listen to a number");
  if (typeof port !== "number") throw wrongType("options.port", "of type number or string", port);
  if (!NumberIsInteger(port) || port < 0 || port > 65535) {
    throw coded(RangeError, "ERR_SOCKET_BAD_PORT", `options.port should be >= 0 and < 65536. Received type number (${port}).`);
  }
  return port;
}

// ---- cloudflare:node ----

// serverOf returns the server that a description names: it, a port, or an object with one.
function serverOf(what) {
  if (http.isServer(what)) return what;
  const port = typeof what === "object" && what !== null ? what.port : what;
  if (typeof port !== "number") throw new TypeError("the port of a server is a number: httpServerHandler({ port })");
  const server = MapPrototypeGet(ports, port);
  if (server === undefined) {
    throw new Error(`Http server with port ${port} not found. This is likely a bug with your code. You should check if server.listen() was called with the same port (${port})`);
  }
  return server;
}

// partsOf returns the host of a URL, what comes behind it, and whether its scheme is https.
function partsOf(url) {
  const from = StringPrototypeIndexOf(url, "://") + 3;
  const hash = StringPrototypeIndexOf(url, "#");
  const path = StringPrototypeIndexOf(url, "/", from);
  const end = hash === -1 ? url.length : hash;
  return {
    __proto__: null, host: StringPrototypeSlice(url, from, path), path: StringPrototypeSlice(url, path, end),
    secure: StringPrototypeStartsWith(url, "https:"),
  };
}

// addLength adds the header by which parsers of bodies know that there is one: a Request need not have it.
function addLength(flat, list, s) {
  if (internal.listHas(list, "content-length") || internal.listHas(list, "transfer-encoding")) return;
  let length = -1;
  if (s.stream === null) {
    if (s.source === null || s.used) return;
    s.source = internal.sourceBytes(s.source, s.shared);
    s.shared = false;
    length = lengthOf(s.source);
  }
  if (length === 0) return;
  flat[flat.length] = length > 0 ? "content-length" : "transfer-encoding";
  flat[flat.length] = length > 0 ? `${length}` : "chunked";
}

// answer has a server answer a request. The promise of the Response is settled as the server says.
function answer(server, request) {
  const s = internal.requestState(request);
  const parts = partsOf(internal.requestURL(s));
  const list = internal.headersList(internal.requestHeaders(s));
  const flat = new primordials.List();
  for (let i = 0; i < list.flat.length; i++) flat[i] = list.flat[i];
  if (!internal.listHas(list, "host")) {
    flat[flat.length] = "host";
    flat[flat.length] = parts.host;
  }
  addLength(flat, list, s);
  const { req, res } = http.messages(server, new Connection(parts.secure, internal.listGet(list, "cf-connecting-ip") ?? undefined));
  req.method = s.method;
  req.url = parts.path;
  return new Promise((resolve, reject) => {
    let answered = false;
    http.answerWith(res, { __proto__: null, reject, resolve(response) {
      answered = true;
      resolve(response);
    } });
    res.socket = req.socket;
    fill(req, flat, s, null);
    res.once("close", () => { if (!req.destroyed && !req.complete) req._dump(); });
    try {
      if (!server.emit("request", req, res)) throw new Error("the server has no listener of requests");
    } catch (error) {
      if (answered) internal.reportException(error); // nobody waits for it
      else reject(error);
      res.destroy();
    }
  });
}

function handleAsNodeRequest(what, request) {
  try {
    if (!internal.isRequest(request)) throw new TypeError("handleAsNodeRequest: the second argument is no Request");
    return answer(serverOf(what), request);
  } catch (error) {
    return PromiseReject(error);
  }
}

// httpServerHandler makes an object with a fetch handler.
function httpServerHandler(what) {
  if (http.isServer(what) && !what.listening) what.listen(0);
  else if (!http.isServer(what) && typeof what?.port !== "number") throw new TypeError("httpServerHandler takes an object with a port, or a server");
  return { fetch(request) { return handleAsNodeRequest(what, request); } };
}

http.Server = Server;
http.ServerResponse = ServerResponse;
internal.node.put(internal.node, { cloudflare: { handleAsNodeRequest, httpServerHandler } });
