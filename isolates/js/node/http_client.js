// node/http_client.js is the client of node:http. fetch() sends its requests, with its guard and its bounds.

"use strict";

const {
  Error, ReflectOwnKeys, RegExpPrototypeExec, StringPrototypeIncludes, StringPrototypeStartsWith,
  StringPrototypeToUpperCase, TypeError,
} = primordials;
const { isToken, upon } = internal;
const { builtin, callLater, checks, coded, http, wrongType } = internal.node;
const { Buffer } = builtin("buffer");
const EventEmitter = builtin("events");
const timers = builtin("timers");
const { Connection, OutgoingMessage, bodyLength, fill, notHere, out, setAll } = http;
const { portOf } = internal.nodeModule("address");

const unescaped = /[^\u0021-\u00ff]/;
const notOfHost = /[/\\?#@\s]/;

// ---- agents ----

// Agent has the options of an agent of Node. fetch() keeps connections by itself.
class Agent extends EventEmitter {
  defaultPort = 80;
  protocol = "http:";
  options;
  requests = { __proto__: null };
  sockets = { __proto__: null };
  freeSockets = { __proto__: null };
  keepAliveMsecs;
  keepAlive;
  maxSockets;
  maxFreeSockets;
  scheduling;
  maxTotalSockets;
  totalSocketCount = 0;
  constructor(options = undefined) {
    super();
    this.options = { __proto__: null, noDelay: true, path: null, ...options };
    this.keepAliveMsecs = this.options.keepAliveMsecs || 1000;
    this.keepAlive = this.options.keepAlive || false;
    this.maxSockets = this.options.maxSockets || Infinity;
    this.maxFreeSockets = this.options.maxFreeSockets || 256;
    this.scheduling = this.options.scheduling || "lifo";
    this.maxTotalSockets = this.options.maxTotalSockets ?? Infinity;
  }
  createConnection() { throw notHere("connections of an Agent", "fetch() makes them"); }
  addRequest() { throw notHere("connections of an Agent", "fetch() makes them"); }
  getName(options = {}) {
    return `${options.host || "localhost"}:${options.port || ""}:${options.localAddress || ""}`;
  }
  keepSocketAlive() { return true; }
  reuseSocket() {}
  destroy() {}
}

const inert = { __proto__: null, addRequest: Agent.prototype.addRequest, createConnection: Agent.prototype.createConnection };

// agentOf returns the agent of a request. One that makes connections of its own would be ignored.
function agentOf(agent, standard) {
  if (agent === undefined || agent === null || agent === false) return standard;
  if (typeof agent !== "object" || typeof agent.addRequest !== "function") {
    throw wrongType("options.agent", "of type function or one of Agent-like Object, undefined, or false", agent);
  }
  if (agent.addRequest !== inert.addRequest || agent.createConnection !== inert.createConnection) {
    throw notHere("Agent that makes connections", "fetch() makes them");
  }
  return agent;
}

// ---- options ----

// optionsOf merges the arguments of request(): a URL, options, and a callback.
function optionsOf(args) {
  const input = args[0];
  let [, options, callback] = args;
  const merged = { __proto__: null };
  const add = (from) => {
    const keys = ReflectOwnKeys(from);
    for (let i = 0; i < keys.length; i++) {
      const value = from[keys[i]];
      if (value !== undefined) merged[keys[i]] = value;
    }
  };
  if (typeof input === "string") {
    const text = input;
    const record = internal.parseURL(text, null);
    if (record === null) {
      const error = coded(TypeError, "ERR_INVALID_URL", "Invalid URL");
      error.input = text;
      throw error;
    }
    addURL(merged, record);
  } else if (internal.isURL(input)) add(builtin("url").urlToHttpOptions(input));
  else {
    callback = options;
    options = input;
  }
  if (typeof options === "function") callback = options;
  else if (options !== undefined && options !== null) {
    checks.object(options, "options");
    add(options);
  }
  return [merged, callback];
}

function addURL(into, record) {
  const text = internal.serializeURL(record);
  const url = builtin("url").parse(text);
  into.protocol = url.protocol;
  into.hostname = url.hostname;
  into.path = url.path;
  if (url.port) into.port = +url.port;
  if (record.username || record.password) into.auth = url.auth;
}

function hostOf(options) {
  const { host, hostname } = options;
  const given = hostname !== undefined && hostname !== null ? ["hostname", hostname] : ["host", host];
  if (given[1] === undefined || given[1] === null || given[1] === "") return "localhost";
  if (typeof given[1] !== "string") {
    throw wrongType(`options.${given[0]}`, "of type string or one of undefined or null", given[1]);
  }
  return given[1];
}

const ofTLS = ["ca", "cert", "checkServerIdentity", "key", "pfx"];

// checkTLS refuses what fetch() cannot do.
function checkTLS(options) {
  for (let i = 0; i < ofTLS.length; i++) {
    if (options[ofTLS[i]] !== undefined && options[ofTLS[i]] !== null) throw notHere(`option ${ofTLS[i]} of https`, "use node:tls");
  }
  if (options.rejectUnauthorized === false) throw notHere("option rejectUnauthorized of https", "use node:tls");
}

function checkOptions(options, agent) {
  if (options.socketPath) throw notHere("option socketPath", "a worker has no Unix sockets");
  if (options.createConnection) throw notHere("option createConnection", "fetch() makes connections; use node:net");
  if (options.protocol === "https:" || agent.protocol === "https:") {
    checkTLS(options);
    checkTLS(agent.options);
  }
}

function methodOf(method) {
  if (method === undefined || method === null) return "GET";
  checks.string(method, "options.method");
  if (method === "") return "GET";
  if (!isToken(method)) throw coded(TypeError, "ERR_INVALID_HTTP_TOKEN", `Method must be a valid HTTP token ["${method}"]`);
  const upper = StringPrototypeToUpperCase(method);
  if (upper === "CONNECT" || upper === "TRACE" || upper === "TRACK") throw notHere(`method ${upper}`, "use node:net");
  return upper;
}

function pathOf(path) {
  if (path === undefined || path === null || path === "") return "/";
  const text = `${path}`;
  if (RegExpPrototypeExec(unescaped, text) !== null) {
    throw coded(TypeError, "ERR_UNESCAPED_CHARACTERS", "Request path contains unescaped characters");
  }
  return text;
}

// urlOf returns the URL that is fetched.
function urlOf(protocol, host, port, path) {
  const name = StringPrototypeIncludes(host, ":") && !StringPrototypeStartsWith(host, "[") ? `[${host}]` : host;
  const below = StringPrototypeStartsWith(path, "/") ? path : `/${path}`;
  const record = RegExpPrototypeExec(notOfHost, host) !== null ? null : internal.parseURL(`${protocol}//${name}:${port}${below}`, null);
  if (record === null) throw coded(TypeError, "ERR_INVALID_URL", "Invalid URL");
  return internal.serializeURL(record);
}

// ---- requests ----

const hangUp = () => coded(Error, "ECONNRESET", "socket hang up");

// failure makes the error of a request of what fetch() says.
function failure(error, host, port) {
  const code = internal.failureCode(error);
  let made;
  if (code === "ENOTFOUND" || code === "EAI_AGAIN") {
    made = coded(Error, code, `getaddrinfo ${code} ${host}`);
    http.own(http.own(made, "syscall", "getaddrinfo"), "hostname", host);
  } else if (code === "ECONNREFUSED") {
    made = coded(Error, code, `connect ${code} ${host}:${port}`);
    http.own(http.own(http.own(made, "syscall", "connect"), "address", host), "port", port);
  } else {
    const text = `${error?.message ?? error}`;
    made = coded(Error, code === "" ? "ECONNRESET" : code, text);
  }
  made.cause = error;
  return made;
}

class ClientRequest extends OutgoingMessage {
  agent;
  method;
  path;
  host;
  protocol;
  res = null;
  aborted = false;
  reusedSocket = false;
  maxHeadersCount = null;
  timeout = undefined;
  #method; // that is sent; a guest may change method
  #port;
  #url;
  #signal = null; // of the fetch
  #over = false; // the response has ended
  #timer = null;
  #began = false; // the code that made the request has ended
  constructor(input, given = undefined, last = undefined, standard = http.globalAgent) {
    super({ autoDestroy: false });
    const read = optionsOf([input, given, last]);
    const options = read[0];
    const callback = read[1];
    this.agent = agentOf(options.agent, standard);
    const expected = this.agent.protocol || "http:";
    this.protocol = options.protocol || standard.protocol;
    if (this.protocol !== expected) {
      throw coded(TypeError, "ERR_INVALID_PROTOCOL", `Protocol "${this.protocol}" not supported. Expected "${expected}"`);
    }
    checkOptions(options, this.agent);
    this.path = pathOf(options.path);
    this.host = hostOf(options);
    this.#method = methodOf(options.method);
    this.method = this.#method;
    const standardPort = this.protocol === "https:" ? 443 : 80;
    this.#port = portOf(options.port || options.defaultPort || standardPort);
    this.#url = urlOf(this.protocol, this.host, this.#port, this.path);
    this.#readHeaders(options, this.#port === standardPort ? this.host : `${this.host}:${this.#port}`);
    if (options.timeout !== undefined) this.setTimeout(options.timeout);
    if (typeof callback === "function") this.once("response", callback);
    if (options.signal) builtin("stream").addAbortSignal(options.signal, this);
    out.setUp(this, (bytes, stream) => { this.#send(bytes, stream); }, (error) => { this.#left(error); });
    this.socket = new Connection(this.protocol === "https:");
    callLater(() => {
      this.#began = true;
      if (!this.destroyed) this.emit("socket", this.socket);
    });
  }
  #readHeaders(options, host) {
    if (options.headers) setAll(this, options.headers);
    if (!this.hasHeader("host") && options.setHost !== false) this.setHeader("Host", host);
    if (options.auth && !this.hasHeader("authorization")) {
      this.setHeader("Authorization", `Basic ${Buffer.from(`${options.auth}`).toString("base64")}`);
    }
  }
  _implicitHeader() {
    if (this.headersSent) throw coded(Error, "ERR_HTTP_HEADERS_SENT", "Cannot render headers after they are sent to the client");
    out.seal(this, false);
  }
  #send(bytes, stream) {
    const list = out.list(this);
    const length = stream === null ? -1 : bodyLength(this.getHeader("content-length"));
    internal.listDelete(list, "content-length");
    if (length >= 0) internal.setFixedLength(stream, length);
    const whole = bytes !== null && primordials.lengthOf(bytes) > 0 ? bytes : null;
    const request = internal.newNodeRequest(this.#method, this.#url, list, whole, stream);
    this.#signal = internal.requestState(request).signal;
    upon(internal.fetch(request), (response) => { this.#answered(response); }, (error) => { this.#failed(error); });
  }
  #failed(error) {
    this.#signal = null;
    if (!this.destroyed) this.destroy(failure(error, this.host, this.#port));
  }
  #answered(response) {
    const s = internal.responseState(response);
    if (this.destroyed) {
      this.#abort();
      return;
    }
    const res = new http.IncomingMessage(this.socket);
    this.res = res;
    res.req = this;
    res.statusCode = s.status;
    res.statusMessage = s.statusText;
    fill(res, internal.decodedResponseHeaders(s), s, (complete, error) => { this.#ended(complete, error); });
    this.#active();
    if (!this.emit("response", res)) res._dump();
  }
  // #ended: the response is read, or was destroyed.
  #ended(complete) {
    this.#over = true;
    this.#stopTimer();
    if (!complete) this.#abort();
    callLater(() => { this.destroy(); });
  }
  #abort() {
    const signal = this.#signal;
    this.#signal = null;
    if (signal !== null) internal.signalAbort(signal, hangUp());
  }
  // #left: the request is destroyed.
  #left() {
    this.#stopTimer();
    if (this.#over) return;
    this.#abort();
    if (this.res !== null && !this.res.destroyed) this.res.destroy(coded(Error, "ECONNRESET", "aborted"));
  }
  destroy(error = undefined) {
    if (this.destroyed) return this;
    if (this.res === null && !error && !this.#over) error = hangUp();
    return super.destroy(error);
  }
  abort() {
    if (this.aborted) return;
    this.aborted = true;
    callLater(() => { this.emit("abort"); });
    if (this.#began) this.destroy();
    else super.destroy();
  }
  // ---- time ----
  setTimeout(delay, callback = undefined) {
    checks.number(delay, "msecs", 0);
    if (callback !== undefined) {
      checks.function(callback, "callback");
      this.once("timeout", callback);
    }
    this.timeout = delay;
    this.#stopTimer();
    if (delay > 0 && !this.destroyed && !this.#over) {
      this.#timer = timers.setTimeout(() => {
        this.#timer = null;
        this.emit("timeout");
      }, delay);
    }
    return this;
  }
  clearTimeout(callback) {
    this.setTimeout(0);
    if (callback) this.removeListener("timeout", callback);
  }
  #active() {
    if (this.#timer !== null) this.#timer.refresh();
  }
  #stopTimer() {
    if (this.#timer !== null) this.#timer.close();
    this.#timer = null;
  }
  setNoDelay() {}
  setSocketKeepAlive() {}
  onSocket() {}
}

http.Agent = Agent;
http.ClientRequest = ClientRequest;
http.globalAgent = new Agent({ keepAlive: true, scheduling: "lifo", timeout: 5000 });
