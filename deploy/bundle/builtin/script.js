// script.js makes handlers of scripts in Hoody's way: code that runs for each request, with req, res, ws and metadata
// around it. It answers by what it returns, or by res.

const encoder = new TextEncoder();

// Bytes are what a Buffer is to such scripts: toString() gives their text.
class Bytes extends Uint8Array {
  static get [Symbol.species]() { return Uint8Array; }
  toString(encoding = "utf8") {
    switch (encoding.toLowerCase()) {
      case "hex": return Array.from(this, (byte) => byte.toString(16).padStart(2, "0")).join("");
      case "base64": return btoa(this.toString("latin1"));
      case "latin1": case "binary": {
        let text = "";
        for (let i = 0; i < this.length; i += 4096) text += String.fromCharCode(...this.subarray(i, i + 4096));
        return text;
      }
      case "utf8": case "utf-8": return new TextDecoder("utf-8", { ignoreBOM: true }).decode(this);
    }
    throw new TypeError(`encoding ${encoding}: it is utf8, hex, base64 or latin1`);
  }
}

function bytesOf(chunk) {
  if (typeof chunk === "string") return encoder.encode(chunk);
  if (ArrayBuffer.isView(chunk)) return new Uint8Array(chunk.buffer, chunk.byteOffset, chunk.byteLength);
  if (chunk instanceof ArrayBuffer) return new Uint8Array(chunk);
  throw new TypeError("a piece of a response is a string or bytes");
}

// once reads pairs as an object: a name that comes more than once has a list.
function once(pairs) {
  const object = {};
  for (const [name, value] of pairs) {
    if (!Object.hasOwn(object, name)) {
      Object.defineProperty(object, name, { value, writable: true, enumerable: true, configurable: true });
    } else object[name] = [].concat(object[name], value);
  }
  return object;
}

async function parseBody(request, bytes) {
  const type = (request.headers.get("content-type") ?? "").split(";")[0].trim().toLowerCase();
  if (bytes.length === 0) return undefined;
  if (type === "application/x-www-form-urlencoded") return once(new URLSearchParams(bytes.toString()));
  if (type === "multipart/form-data") {
    return once(await new Response(bytes, { headers: { "content-type": request.headers.get("content-type") } }).formData());
  }
  if (type === "application/json" || type.endsWith("+json")) {
    try { return JSON.parse(bytes.toString()); } catch { return bytes.toString(); } // the script decides what it is worth
  }
  return type === "" || type.startsWith("text/") ? bytes.toString() : bytes;
}

const cookiesOf = (header) => once((header ?? "").split(/;\s*/).filter((pair) => pair.includes("="))
  .map((pair) => [pair.slice(0, pair.indexOf("=")), pair.slice(pair.indexOf("=") + 1)]));

async function readRequest(request) {
  const url = new URL(request.url);
  const rawBody = new Bytes(await request.arrayBuffer());
  const headers = Object.fromEntries(request.headers);
  const ip = headers["x-real-ip"];
  return {
    method: request.method, url: url.pathname + url.search, originalUrl: url.pathname + url.search, path: url.pathname,
    protocol: url.protocol.slice(0, -1), hostname: url.hostname, httpVersion: "1.1", headers, ip,
    socket: { remoteAddress: ip }, query: once(url.searchParams), params: request.params ?? {},
    cookies: cookiesOf(headers.cookie), rawBody, body: await parseBody(request, rawBody), signal: request.signal,
    get: (name) => headers[name.toLowerCase()], header: (name) => headers[name.toLowerCase()],
  };
}

// ---- the response ----

const withoutBody = (status) => status === 101 || status === 204 || status === 205 || status === 304;

// Answer is res: Node's ServerResponse, as far as scripts use it, and what Express adds.
class Answer {
  statusCode = 200;
  statusMessage = "";
  headersSent = false;
  writableEnded = false;
  #headers = new Map(); // lower case → [name, value]
  #send;
  #stream;
  sent = new Promise((resolve) => { this.#send = resolve; }); // the Response, once it has begun
  get finished() { return this.writableEnded; }
  setHeader(name, value) {
    if (this.headersSent) throw new Error(`res.setHeader("${name}"): the headers have been sent`);
    this.#headers.set(String(name).toLowerCase(), [name, value]);
    return this;
  }
  getHeader(name) { return this.#headers.get(String(name).toLowerCase())?.[1]; }
  getHeaders() { return Object.fromEntries(Array.from(this.#headers, ([name, [, value]]) => [name, value])); }
  getHeaderNames() { return [...this.#headers.keys()]; }
  hasHeader(name) { return this.#headers.has(String(name).toLowerCase()); }
  removeHeader(name) { this.#headers.delete(String(name).toLowerCase()); }
  appendHeader(name, value) {
    return this.setHeader(name, this.hasHeader(name) ? [].concat(this.getHeader(name), value) : value);
  }
  writeHead(status, message, headers) {
    if (this.headersSent) throw new Error("res.writeHead: the headers have been sent");
    this.statusCode = status;
    if (typeof message === "string") this.statusMessage = message;
    else headers = message;
    const pairs = Array.isArray(headers) && !Array.isArray(headers[0])
      ? headers.flatMap((name, i) => i % 2 ? [] : [[name, headers[i + 1]]])
      : headers?.[Symbol.iterator] ? headers : Object.entries(headers ?? {});
    for (const [name, value] of pairs) this.setHeader(name, value);
    return this;
  }
  flushHeaders() { this.#open(); }
  write(chunk, encoding, done) {
    if (this.writableEnded) throw new Error("res.write: the response has ended");
    this.#open();
    this.#stream?.enqueue(bytesOf(chunk));
    (typeof encoding === "function" ? encoding : done)?.();
    return true;
  }
  end(chunk, encoding, done) {
    if (typeof chunk === "function") [chunk, done] = [undefined, chunk];
    if (!this.writableEnded) {
      if (this.headersSent) {
        if (chunk !== undefined && chunk !== null) this.write(chunk);
        this.#stream?.close();
      } else this.#respond(chunk === undefined || chunk === null ? null : bytesOf(chunk));
      this.writableEnded = true;
    }
    (typeof encoding === "function" ? encoding : done)?.();
    return this;
  }
  on() { return this; }
  once() { return this; }
  // what Express adds
  status(code) {
    this.statusCode = code;
    return this;
  }
  sendStatus(code) { return this.status(code).end(); }
  set(name, value) {
    for (const [key, of] of typeof name === "object" ? Object.entries(name) : [[name, value]]) this.setHeader(key, of);
    return this;
  }
  header(name, value) { return this.set(name, value); }
  type(value) { return this.setHeader("Content-Type", value); }
  json(value) { return this.#typed("application/json", JSON.stringify(value)); }
  send(value) {
    if (value === undefined) return this.end();
    if (typeof value === "string") return this.#typed("text/html; charset=utf-8", value);
    if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) return this.#typed("application/octet-stream", value);
    return this.json(value);
  }
  redirect(status, location) {
    if (typeof status !== "number") [status, location] = [302, status];
    return this.status(status).setHeader("Location", location).end();
  }
  #typed(type, body) {
    if (!this.hasHeader("content-type")) this.setHeader("Content-Type", type);
    return this.end(body);
  }
  // respond makes the response of a body that is whole, or of a stream.
  #respond(body) {
    this.headersSent = true;
    this.#send(this.response(body));
  }
  #open() {
    if (this.headersSent) return;
    if (withoutBody(this.statusCode)) return this.#respond(null);
    const self = this;
    this.#respond(new ReadableStream({
      start(controller) { self.#stream = controller; },
      cancel() { self.writableEnded = true; },
    }));
  }
  fail(error) {
    if (this.#stream && !this.writableEnded) this.#stream.error(error);
    this.writableEnded = true;
  }
  response(body, type) {
    const headers = new Headers();
    for (const [name, value] of this.#headers.values()) {
      for (const one of Array.isArray(value) ? value : [value]) headers.append(name, String(one));
    }
    if (type && !headers.has("content-type")) headers.set("content-type", type);
    return new Response(withoutBody(this.statusCode) ? null : body,
      { status: this.statusCode, statusText: this.statusMessage, headers });
  }
  // of makes the response of what a script has returned.
  of(value) {
    if (value === undefined) return this.response(null);
    if (value instanceof Response) return value;
    if (typeof value === "string") return this.response(value, "text/plain; charset=utf-8");
    const asIs = [ReadableStream, Blob, FormData, URLSearchParams, ArrayBuffer].some((type) => value instanceof type);
    if (asIs || ArrayBuffer.isView(value)) return this.response(value);
    return this.response(JSON.stringify(value), "application/json");
  }
  // from begins with what an earlier response says.
  from(response) {
    this.statusCode = response.status;
    this.statusMessage = response.statusText;
    for (const [name, value] of response.headers) if (name !== "content-length") this.appendHeader(name, value);
    return this;
  }
}

// ---- WebSockets ----

// rooms has the open sockets by path: a script that answers /rooms/:id has those of each room apart.
const rooms = new Map();

const events = ["open", "message", "close", "error"];

// Sockets is ws: the handlers that one run of a script sets, and the sockets of its path.
class Sockets {
  open = null;
  message = null;
  close = null;
  error = null;
  #more = new Map(events.map((name) => [name, []]));
  #path;
  constructor(path) { this.#path = path; }
  get connections() { return rooms.get(this.#path) ?? new Set(); }
  on(name, handler) {
    const list = this.#more.get(name);
    if (!list) throw new TypeError(`ws.on("${name}"): it is one of ${events.join(", ")}`);
    list.push(handler);
    return this;
  }
  off(name, handler) {
    const list = this.#more.get(name) ?? [];
    if (list.includes(handler)) list.splice(list.indexOf(handler), 1);
    return this;
  }
  broadcast(data) {
    for (const socket of this.connections) if (socket.readyState === 1) socket.send(data);
  }
  get used() { return events.some((name) => this[name] || this.#more.get(name).length); }
  #tell(name, ...args) {
    this[name]?.(...args);
    for (const handler of [...this.#more.get(name)]) handler(...args);
  }
  accept(req, res, metadata) {
    const { 0: client, 1: socket } = new WebSocketPair();
    socket.binaryType = "arraybuffer";
    socket.accept();
    socket.data = { ...metadata, ip: metadata.clientIp };
    if (!rooms.has(this.#path)) rooms.set(this.#path, new Set());
    rooms.get(this.#path).add(socket);
    const leave = () => {
      const room = rooms.get(this.#path);
      room?.delete(socket);
      if (room?.size === 0) rooms.delete(this.#path);
    };
    socket.addEventListener("message",
      ({ data }) => this.#tell("message", socket, typeof data === "string" ? data : new Bytes(data)));
    socket.addEventListener("close", ({ code, reason }) => {
      leave();
      this.#tell("close", socket, code, reason);
    });
    socket.addEventListener("error", ({ error, message }) => this.#tell("error", socket, error ?? new Error(message)));
    this.#tell("open", socket, req);
    const offered = (req.headers["sec-websocket-protocol"] ?? "").split(",")[0].trim();
    const chosen = res.getHeader("sec-websocket-protocol") ?? offered;
    return new Response(null,
      { status: 101, webSocket: client, headers: chosen ? { "sec-websocket-protocol": chosen } : {} });
  }
}

// ---- the handlers ----

// exchanges has what pre, the script and post of one request share.
const exchanges = new WeakMap();

async function exchangeOf(request, env, ctx) {
  const known = exchanges.get(request);
  if (known) return known;
  const req = await readRequest(request);
  const metadata = {
    executionId: req.headers["event-id"], clientIp: req.ip, parameters: req.params, query: req.query, method: req.method,
    path: req.path, url: request.url, hostname: req.hostname, timestamp: Date.now(),
  };
  const made = { req, res: new Answer(), ws: new Sockets(req.path), metadata, env, ctx };
  exchanges.set(request, made);
  return made;
}

// run runs a script until its response has begun, or it has returned. A script that goes on has time to end.
async function run(body, exchange) {
  const ended = Promise.resolve(body(exchange));
  const first = await Promise.race([exchange.res.sent, ended.then((value) => ({ value }))]);
  if (!(first instanceof Response)) return exchange.res.headersSent ? { response: await exchange.res.sent } : first;
  exchange.ctx.waitUntil(ended.catch((error) => {
    exchange.res.fail(error);
    throw error;
  }));
  return { response: first };
}

export function script(body) {
  return {
    async fetch(request, env, ctx) {
      const exchange = await exchangeOf(request, env, ctx);
      const { req, res, ws, metadata } = exchange;
      if (request.headers.get("upgrade")?.toLowerCase() === "websocket") {
        const value = await body(exchange);
        if (ws.used) return ws.accept(req, res, metadata);
        return res.headersSent ? res.sent : res.of(value);
      }
      const { response, value } = await run(body, exchange);
      return response ?? res.of(value);
    },
  };
}

// pre answers the request only if the script returns something, or ends the response.
export function pre(body) {
  return async (request, env, ctx) => {
    const exchange = await exchangeOf(request, env, ctx);
    const { response, value } = await run(body, exchange);
    return response ?? (value === undefined ? undefined : exchange.res.of(value));
  };
}

// post begins with the status and the headers of the response. What it returns takes the place of the body.
export function post(body) {
  return async (request, before, env, ctx) => {
    if (before.webSocket) return before;
    const res = new Answer().from(before);
    const { response, value } = await run(body, { ...await exchangeOf(request, env, ctx), res });
    return response ?? (value === undefined ? res.response(before.body) : res.of(value));
  };
}
