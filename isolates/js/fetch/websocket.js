// fetch/websocket.js is WebSocket of the WebSockets standard, and WebSocketPair of Cloudflare. Go opens the connection,
// makes frames and checks messages. A socket belongs to the event that made it and ends with that event. Of a pair, one
// end goes to the client with the Response. The other one belongs to the context.

"use strict";

const {
  Map, MapPrototypeDelete, MapPrototypeGet, MapPrototypeSet, ObjectDefineProperty, Set, SetPrototypeAdd, SetPrototypeHas,
  StringPrototypeCharCodeAt, StringPrototypeIncludes, StringPrototypeToLowerCase, SymbolIterator, TypeError,
  TypedArrayPrototypeGetBuffer, Uint8Array, lengthOf, sealedProto,
} = primordials;
const {
  CloseEvent, DOMException, Event, EventTarget, HandlerSlot, TOKEN, defineConstants, defineInterface, fire, illegalInvocation,
  isBufferSource, isObject, liveBytes, requireArguments, sendOps, serializeOrigin, serializeURL, setHandler, toDOMString, toSequence,
  toUSVString, toUnsignedShort,
} = internal;
const { decode, encode, send } = host;
const { SOCKET_ACCEPT, SOCKET_END, SOCKET_OPEN, SOCKET_SEND } = sendOps;

const CONNECTING = 0;
const OPEN = 1;
const CLOSING = 2;
const CLOSED = 3;
const MAX_QUEUE = 8388608; // the maximum of bytes that wait to be sent
const MESSAGE = 64; // the cost of a waiting message in addition to its bytes
const MAX_REASON = 123; // bytes

class Socket {
  target;
  url;
  origin;
  id = internal.nextRequestId();
  home;
  run; // the run it belongs to, for forgetIn
  other = null; // the other end of its pair
  given = false; // whether the other end is used, or this one went with a Response
  state = CONNECTING;
  buffered = 0; // bytes that send() took and Go has not written
  waiting = 0; // the cost of the messages that Go has not yet reported as written
  protocol = "";
  binaryType = "blob";
  onopen = new HandlerSlot();
  onerror = new HandlerSlot();
  onclose = new HandlerSlot();
  onmessage = new HandlerSlot();
  constructor(target, url, origin, home) {
    this.target = target;
    this.url = url;
    this.origin = origin;
    this.home = home;
    this.run = home.run;
  }
  command(op, a, b, c) {
    internal.speakFor(this.run);
    send(op, this.id, a, b, c);
  }
  // giveUp is "fail the WebSocket connection". Go reports when it is closed.
  giveUp() {
    this.state = CLOSING;
    this.command(SOCKET_END, 0, "", true);
  }
  // dispatch fires an event in the frame of the code that made the socket.
  dispatch(event) {
    internal.callIn(this.home.frame, () => { fire(this.target, event); }, undefined, []);
  }
}
sealedProto(Socket);

const sockets = new Map();

function syntaxError(text) {
  return new DOMException(text, "SyntaxError");
}

// toAddress returns the URL record of a ws or wss URL.
function toAddress(text) {
  const record = internal.parseURL(text, null);
  if (record === null) throw syntaxError(`new WebSocket: ${internal.inspectBrief(text)} is no valid URL`);
  if (record.scheme === "http") record.scheme = "ws";
  else if (record.scheme === "https") record.scheme = "wss";
  if (record.scheme !== "ws" && record.scheme !== "wss") {
    throw syntaxError(`new WebSocket: the scheme ${record.scheme}: is none of ws:, wss:, http: and https:`);
  }
  if (record.fragment !== null) throw syntaxError("new WebSocket: the URL has a fragment");
  return record;
}

// toProtocols is the conversion to (DOMString or sequence<DOMString>).
function toProtocols(value) {
  if (value === undefined) return [];
  if (isObject(value)) {
    const method = value[SymbolIterator];
    if (method !== undefined && method !== null) return toSequence(value, toDOMString, "new WebSocket: protocols", method);
  }
  return [toDOMString(value)];
}

const separators = "()<>@,;:\\\"/[]?={} \t";

function isToken(text) {
  for (let i = 0; i < text.length; i++) {
    const c = StringPrototypeCharCodeAt(text, i);
    if (c < 0x21 || c > 0x7e || StringPrototypeIncludes(separators, text[i])) return false;
  }
  return text.length > 0;
}

// checkProtocols requires tokens. Each token must occur only once, without regard to case.
function checkProtocols(list) {
  const seen = new Set();
  for (let i = 0; i < list.length; i++) {
    const name = StringPrototypeToLowerCase(list[i]);
    if (!isToken(list[i])) throw syntaxError(`new WebSocket: ${internal.inspectBrief(list[i])} is no name of a protocol`);
    if (SetPrototypeHas(seen, name)) throw syntaxError(`new WebSocket: the protocol ${list[i]} is there twice`);
    SetPrototypeAdd(seen, name);
  }
  return list;
}

function open(s, protocols) {
  if (internal.eventIsOver()) return;
  s.command(SOCKET_OPEN, s.url, protocols);
  MapPrototypeSet(sockets, s.id, s);
}

// transmit is send() of an open socket. If too many bytes wait, the socket is full and transmit ends it.
function transmit(s, bytes, text) {
  s.waiting += lengthOf(bytes) + MESSAGE;
  if (s.waiting > MAX_QUEUE) {
    s.giveUp();
    return;
  }
  try {
    s.command(SOCKET_SEND, text, bytes);
  } catch {
    s.giveUp(); // more than the limit of one turn
  }
}

let socketOf;

class WebSocket extends EventTarget {
  #socket;
  constructor(url, protocols = undefined) {
    requireArguments(arguments.length, 1, "new WebSocket");
    if (url === TOKEN) {
      super();
      this.#socket = new Socket(this, "", "", protocols);
      return;
    }
    const text = toUSVString(url);
    const list = toProtocols(protocols);
    const record = toAddress(text);
    checkProtocols(list);
    super();
    this.#socket = new Socket(this, serializeURL(record), serializeOrigin(record), internal.here());
    open(this.#socket, list);
  }
  static {
    socketOf = (value) => {
      if (!isObject(value) || !(#socket in value)) throw illegalInvocation("WebSocket");
      return value.#socket;
    };
    internal.isWebSocket = (value) => isObject(value) && #socket in value;
  }
  get url() { return socketOf(this).url; }
  get readyState() { return socketOf(this).state; }
  get bufferedAmount() { return socketOf(this).buffered; }
  get onopen() { return socketOf(this).onopen.value; }
  set onopen(value) { setHandler(this, socketOf(this).onopen, "open", value); }
  get onerror() { return socketOf(this).onerror.value; }
  set onerror(value) { setHandler(this, socketOf(this).onerror, "error", value); }
  get onclose() { return socketOf(this).onclose.value; }
  set onclose(value) { setHandler(this, socketOf(this).onclose, "close", value); }
  get extensions() { return socketOf(this) && ""; }
  get protocol() { return socketOf(this).protocol; }
  accept() { accept(socketOf(this)); }
  close(code = undefined, reason = undefined) {
    const s = socketOf(this);
    const status = code === undefined ? 0 : toUnsignedShort(code, "clamp");
    const text = reason === undefined ? "" : toUSVString(reason);
    if (code !== undefined && status !== 1000 && (status < 3000 || status > 4999)) {
      throw new DOMException(`WebSocket.close: the code is ${status}: it is 1000, or 3000 to 4999`, "InvalidAccessError");
    }
    if (lengthOf(encode(text)) > MAX_REASON) throw syntaxError(`WebSocket.close: the reason is longer than ${MAX_REASON} bytes`);
    if (s.state === CONNECTING && s.other !== null) s.state = CLOSED;
    else if (s.state === CONNECTING) s.giveUp();
    else if (s.state === OPEN) {
      s.state = CLOSING;
      s.command(SOCKET_END, status === 0 && text !== "" ? 1000 : status, text, false);
    }
  }
  get onmessage() { return socketOf(this).onmessage.value; }
  set onmessage(value) { setHandler(this, socketOf(this).onmessage, "message", value); }
  get binaryType() { return socketOf(this).binaryType; }
  set binaryType(value) {
    const s = socketOf(this);
    const type = toDOMString(value);
    if (type === "blob" || type === "arraybuffer") s.binaryType = type;
  }
  send(data) {
    const s = socketOf(this);
    requireArguments(arguments.length, 1, "WebSocket.send");
    const text = !internal.isBlob(data) && !isBufferSource(data);
    const bytes = text ? encode(toUSVString(data)) : internal.isBlob(data) ? internal.blobView(data) : liveBytes(data);
    if (s.state === CONNECTING) throw new DOMException("WebSocket.send: the connection is not open yet", "InvalidStateError");
    s.buffered += lengthOf(bytes);
    if (s.state === OPEN) transmit(s, bytes, text);
  }
}
defineInterface(WebSocket, "WebSocket");
defineConstants(WebSocket, { __proto__: null, CONNECTING, OPEN, CLOSING, CLOSED });

// ---- WebSocketPair ----

class Background {
  run = internal.background();
  frame = undefined;
}
sealedProto(Background);

class WebSocketPair {
  constructor() {
    if (!internal.isConcurrent()) {
      throw new TypeError("new WebSocketPair: sockets outlive their event only in mode persistent: say \"mode\": \"persistent\" in the manifest");
    }
    const home = new Background();
    for (let i = 0; i < 2; i++) {
      const value = new WebSocket(TOKEN, home);
      ObjectDefineProperty(this, i, { __proto__: null, value, writable: true, enumerable: true, configurable: true });
    }
    const first = socketOf(this[0]);
    const second = socketOf(this[1]);
    first.other = second;
    second.other = first;
  }
}
defineInterface(WebSocketPair, "WebSocketPair");

// accept makes an end of a pair that of the worker. What it sends waits until the client has the other end.
function accept(s) {
  if (s.other === null) throw new TypeError("WebSocket.accept: only an end of a WebSocketPair can be accepted");
  if (s.given || s.state !== CONNECTING) {
    throw new TypeError("WebSocket.accept: this end was accepted or closed already, or its other end was accepted");
  }
  s.other.given = true;
  s.state = OPEN;
  s.command(SOCKET_ACCEPT);
  MapPrototypeSet(sockets, s.id, s);
}

// giveSocket returns the id of the worker's end for a Response that gives the other end to the client.
internal.giveSocket = (value) => {
  const s = socketOf(value);
  if (s.other === null || s.other.state === CONNECTING) {
    throw new TypeError("the webSocket of the Response is no end of a WebSocketPair whose other end was accepted");
  }
  if (s.other.other === null) throw new TypeError("the webSocket of the Response was given to a client already");
  s.other.other = null;
  return s.other.id;
};

// ---- messages from Go ----

internal.socketOpened = (id, protocol) => {
  const s = MapPrototypeGet(sockets, id);
  if (s === undefined || s.state !== CONNECTING) return;
  s.state = OPEN;
  s.protocol = protocol;
  s.dispatch(new Event("open"));
};

internal.socketMessage = (id, binary, bytes) => {
  const s = MapPrototypeGet(sockets, id);
  if (s === undefined || s.state !== OPEN) return;
  let data;
  if (!binary) data = decode(bytes, false);
  else if (s.binaryType === "blob") data = internal.newBlob(bytes, "");
  else data = wholeBuffer(bytes);
  s.dispatch(internal.newMessageEvent("message", data, s.origin, "", []));
};

function wholeBuffer(bytes) {
  const buffer = TypedArrayPrototypeGetBuffer(bytes);
  return primordials.ArrayBufferPrototypeGetByteLength(buffer) === lengthOf(bytes) ? buffer
    : TypedArrayPrototypeGetBuffer(new Uint8Array(bytes));
}

internal.socketSent = (id, bytes, count) => {
  const s = MapPrototypeGet(sockets, id);
  if (s === undefined) return;
  s.buffered -= bytes;
  s.waiting -= bytes + count * MESSAGE;
};

internal.socketClosed = (id, code, reason, wasClean, failed) => {
  const s = MapPrototypeGet(sockets, id);
  if (s === undefined) return;
  MapPrototypeDelete(sockets, id);
  s.state = CLOSED;
  if (failed) s.dispatch(new Event("error"));
  s.dispatch(new CloseEvent("close",
    { __proto__: null, bubbles: false, cancelable: false, composed: false, code, reason, wasClean }));
};

internal.onForget((run) => { internal.forgetIn(sockets, run); });

internal.addInspector(internal.isWebSocket, (value) => {
  const { protocol, state, url } = socketOf(value);
  return ["url", url, "readyState", state, "protocol", protocol];
});
