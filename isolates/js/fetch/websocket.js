// fetch/websocket.js is WebSocket of the WebSockets standard, and WebSocketPair of Cloudflare. Go opens the connection,
// makes frames and checks messages. A socket belongs to the event that made it and ends with that event. The ends of a
// pair belong to the context. What one sends waits for the other, until that is accepted too or goes to a client with a
// Response.

"use strict";

const {
  ArrayPrototypeValues, Map, MapPrototypeDelete, MapPrototypeGet, MapPrototypeSet, ObjectDefineProperty, Queue, Set, SetPrototypeAdd, SetPrototypeHas,
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
  isEnd = false; // of a pair
  other = null; // the other end of its pair, until a client has that
  accepted = false;
  given = false; // whether a client has it
  inbox = null; // what the other end sent and this one has not received
  pumping = false; // whether a task will deliver the next of the inbox
  state = CONNECTING;
  buffered = 0; // bytes that send() took and Go has not written
  waiting = 0; // the cost of the messages that Go has not yet reported as written
  protocol = "";
  binaryType = internal.settings.binaryType;
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
    if (this.other === null) this.command(SOCKET_END, 0, "", true);
    else pass(this, new Close(1006, "", false));
  }
  // dispatch fires an event in the frame of the code that made the socket.
  dispatch(event) {
    internal.callIn(this.home.frame, () => { fire(this.target, event); }, undefined, []);
  }
}
sealedProto(Socket);

// Message and Close are what one end of a pair sends to the other.
class Message {
  bytes;
  isText;
  constructor(bytes, isText) {
    this.bytes = bytes;
    this.isText = isText;
  }
}
sealedProto(Message);

class Close {
  code; // 0 = none was given
  reason;
  wasClean;
  constructor(code, reason, wasClean) {
    this.code = code;
    this.reason = reason;
    this.wasClean = wasClean;
  }
}
sealedProto(Close);

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
  if (s.other !== null) {
    pass(s, new Message(new Uint8Array(bytes), text));
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
  get url() {
    const s = socketOf(this);
    return s.isEnd ? null : s.url; // as in workerd
  }
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
    if (code !== undefined && !isCloseCode(s, status)) {
      const allowed = s.isEnd ? "1000 to 4999, except 1004, 1005, 1006 and 1015" : "1000, or 3000 to 4999";
      throw new DOMException(`WebSocket.close: the code is ${status}: it is ${allowed}`, "InvalidAccessError");
    }
    if (lengthOf(encode(text)) > MAX_REASON) throw syntaxError(`WebSocket.close: the reason is longer than ${MAX_REASON} bytes`);
    requireAccepted(s, "close");
    if (s.state === CONNECTING) s.giveUp();
    else if (s.state === OPEN) {
      s.state = CLOSING;
      const sent = status === 0 && text !== "" ? 1000 : status;
      if (s.other === null) s.command(SOCKET_END, sent, text, false);
      else pass(s, new Close(sent, text, true));
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
    requireAccepted(s, "send");
    if (s.state === CONNECTING) throw new DOMException("WebSocket.send: the connection is not open yet", "InvalidStateError");
    // The standard's sockets say nothing. Workers that send to many take those out whose send() throws, as at Cloudflare.
    if (s.isEnd && s.state !== OPEN) throw new TypeError("WebSocket.send: this end of the WebSocketPair is closed");
    s.buffered += lengthOf(bytes);
    if (s.state === OPEN) transmit(s, bytes, text);
  }
}
defineInterface(WebSocket, "WebSocket");
defineConstants(WebSocket, {
  __proto__: null, CONNECTING, OPEN, CLOSING, CLOSED, READY_STATE_CONNECTING: CONNECTING, READY_STATE_OPEN: OPEN,
  READY_STATE_CLOSING: CLOSING, READY_STATE_CLOSED: CLOSED, // the second four are Cloudflare's
});

// ---- WebSocketPair ----

class Background {
  run = internal.background();
  frame = undefined;
}
sealedProto(Background);

class WebSocketPair {
  #ends;
  constructor() {
    if (!internal.isConcurrent()) {
      throw new TypeError("new WebSocketPair: sockets outlive their event only in mode persistent: say \"mode\": \"persistent\" in the manifest");
    }
    const home = new Background();
    this.#ends = [new WebSocket(TOKEN, home), new WebSocket(TOKEN, home)];
    for (let i = 0; i < 2; i++) {
      const s = socketOf(this.#ends[i]);
      s.isEnd = true;
      s.state = OPEN;
      s.inbox = new Queue();
      s.other = socketOf(this.#ends[1 - i]);
      ObjectDefineProperty(this, i, { __proto__: null, value: this.#ends[i], writable: true, enumerable: true, configurable: true });
    }
  }
  [SymbolIterator]() {
    if (!isObject(this) || !(#ends in this)) throw illegalInvocation("WebSocketPair");
    return ArrayPrototypeValues(this.#ends);
  }
}
defineInterface(WebSocketPair, "WebSocketPair");

// accept makes an end of a pair that of the worker. A second time it does nothing, as in workerd.
function accept(s) {
  if (!s.isEnd) throw new TypeError("WebSocket.accept: only an end of a WebSocketPair can be accepted");
  if (s.given) throw new TypeError("WebSocket.accept: a client has this end");
  if (s.accepted) return;
  s.accepted = true;
  pump(s);
}

function requireAccepted(s, method) {
  if (s.isEnd && !s.accepted) throw new TypeError(`WebSocket.${method}: accept() this end of the WebSocketPair before`);
}

// isCloseCode reports whether close() takes a code. A server says more than the client that the standard knows.
function isCloseCode(s, code) {
  if (!s.isEnd) return code === 1000 || code >= 3000 && code <= 4999;
  return code >= 1000 && code <= 4999 && code !== 1004 && code !== 1005 && code !== 1006 && code !== 1015;
}

// pass sends a Message or a Close to the other end of the pair.
function pass(s, what) {
  s.other.inbox.push(what);
  pump(s.other);
}

// pump makes a task that delivers the next of the inbox.
function pump(s) {
  if (!s.accepted || s.pumping || s.inbox.length === 0) return;
  s.pumping = true;
  internal.startTimerFor(s.run, s.home.frame, 0, () => {
    s.pumping = false;
    const what = s.inbox.shift();
    pump(s);
    deliver(s, what);
  });
}

function deliver(s, what) {
  const { other } = s;
  if (what instanceof Message) {
    const { bytes, isText } = what;
    wrote(other, lengthOf(bytes), 1);
    receive(s, !isText, bytes);
    return;
  }
  const { code, reason, wasClean } = what;
  if (s.state === OPEN) pass(s, what); // the other end is closed when this one knows it
  if (s.state !== CLOSED) closed(s, code === 0 ? 1005 : code, reason, wasClean, !wasClean);
}

// giveSocket returns the id of the worker's end for a Response that gives the other end to the client. What the worker
// sent until now goes there.
internal.giveSocket = (value) => {
  const given = socketOf(value);
  if (given.given) throw new TypeError("the webSocket of the Response was given to a client already");
  const s = given.other;
  if (s === null || !s.accepted) {
    throw new TypeError("the webSocket of the Response is no end of a WebSocketPair whose other end was accepted");
  }
  if (given.accepted) throw new TypeError("the webSocket of the Response was accepted: give the other end of the pair to the client");
  given.given = true;
  s.other = null;
  MapPrototypeSet(sockets, s.id, s);
  s.command(SOCKET_ACCEPT);
  try {
    for (let what = given.inbox.shift(); what !== undefined; what = given.inbox.shift()) {
      if (what instanceof Message) s.command(SOCKET_SEND, what.isText, what.bytes);
      else s.command(SOCKET_END, what.wasClean ? what.code : 0, what.reason, !what.wasClean);
    }
  } catch {
    s.giveUp(); // more than the limit of one turn
  }
  return s.id;
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
  if (s !== undefined) receive(s, binary, bytes);
};

// receive dispatches a message. By the standard a socket that is closing has none; an end of a pair has, as in workerd.
function receive(s, binary, bytes) {
  if (s.state !== OPEN && !(s.isEnd && s.state === CLOSING)) return;
  let data;
  if (!binary) data = decode(bytes, false);
  else if (s.binaryType === "blob") data = internal.newBlob(bytes, "");
  else data = wholeBuffer(bytes);
  s.dispatch(internal.newMessageEvent("message", data, s.origin, "", []));
}

function wholeBuffer(bytes) {
  const buffer = TypedArrayPrototypeGetBuffer(bytes);
  return primordials.ArrayBufferPrototypeGetByteLength(buffer) === lengthOf(bytes) ? buffer
    : TypedArrayPrototypeGetBuffer(new Uint8Array(bytes));
}

internal.socketSent = (id, bytes, count) => {
  const s = MapPrototypeGet(sockets, id);
  if (s !== undefined) wrote(s, bytes, count);
};

function wrote(s, bytes, count) {
  s.buffered -= bytes;
  s.waiting -= bytes + count * MESSAGE;
}

internal.socketClosed = (id, code, reason, wasClean, failed) => {
  const s = MapPrototypeGet(sockets, id);
  if (s === undefined) return;
  MapPrototypeDelete(sockets, id);
  closed(s, code, reason, wasClean, failed);
};

function closed(s, code, reason, wasClean, failed) {
  s.state = CLOSED;
  if (failed) s.dispatch(new Event("error"));
  s.dispatch(new CloseEvent("close",
    { __proto__: null, bubbles: false, cancelable: false, composed: false, code, reason, wasClean }));
}

internal.onForget((run) => { internal.forgetIn(sockets, run); });

internal.addInspector(internal.isWebSocket, (value) => {
  const { protocol, state, url } = socketOf(value);
  return ["url", url, "readyState", state, "protocol", protocol];
});
