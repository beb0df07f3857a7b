// dom/message_port.js is MessageChannel and MessagePort of HTML, between two ports of one context. postMessage clones
// the message, and the message arrives in a separate task. A port belongs to the event that made it. It receives no
// messages after that event is over.

"use strict";

const { Queue, SymbolIterator, TypeError, sealedProto } = primordials;
const {
  DOMException, Event, EventTarget, HandlerSlot, TOKEN, defineInterface, fire, illegalConstructor, illegalInvocation, isObject,
  requireArguments, setHandler, toDictionary,
} = internal;

// Home is the run that owns a port, and the frame in which the port's listeners run.
class Home {
  run;
  frame;
  constructor(run, frame) {
    this.run = run;
    this.frame = frame;
  }
}
sealedProto(Home);

internal.here = () => new Home(internal.acting(), internal.inheritFrame());

class Message {
  data;
  ports;
  closes; // whether the message reports that the other port was closed
  run; // the message is dropped when this run is over
  constructor(data, ports, closes, run) {
    this.data = data;
    this.ports = ports;
    this.closes = closes;
    this.run = run;
  }
}
sealedProto(Message);

class PortState {
  home;
  port;
  other = null; // the state of the port at the other end
  queue = new Queue();
  enabled = false;
  detached = false;
  receive = null; // the function that takes the messages if there is no port: at the end of a wire
  pumping = null; // the Pump of the task that will deliver a message, or null
  onmessage = new HandlerSlot();
  onmessageerror = new HandlerSlot();
  onclose = new HandlerSlot();
  constructor(home, port) {
    this.home = home;
    this.port = port;
  }
}
sealedProto(PortState);

class Pump {
  run;
  constructor(run) { this.run = run; }
}
sealedProto(Pump);

function isOver(run) {
  return run !== null && run.over;
}

// ownerOf returns the run that a message to a port belongs to. That is the run of the port. If the port has none, it
// is the acting run, in a context that runs one event at a time.
function ownerOf(s) {
  return s.home.run ?? internal.acting();
}

function enqueue(s, message) {
  if (isOver(message.run)) return;
  s.queue.push(message);
  if (s.enabled) pump(s);
}

// pump makes a task that delivers one message. A task of an event that is over does not run, so pump then makes a new
// one.
function pump(s) {
  if (s.queue.length === 0) return;
  const run = ownerOf(s);
  const { pumping } = s;
  if (pumping !== null && pumping.run === run && !isOver(run)) return;
  const mine = (s.pumping = new Pump(run));
  internal.startTimerFor(run, s.home.frame, 0, () => {
    if (s.pumping === mine) s.pumping = null;
    deliver(s);
  });
}

function deliver(s) {
  let message = s.queue.shift();
  while (message !== undefined && isOver(message.run)) message = s.queue.shift();
  if (message === undefined) return;
  pump(s);
  if (s.receive !== null) s.receive(message.data.kind, message.data.value);
  else if (message.closes) fire(s.port, new Event("close"));
  else fire(s.port, internal.newMessageEvent("message", message.data, "", "", message.ports));
}

let stateOf;

class MessagePort extends EventTarget {
  #state;
  constructor(token = undefined, home) {
    if (token !== TOKEN) throw illegalConstructor();
    super();
    this.#state = new PortState(home, this);
  }
  static {
    stateOf = (value) => {
      if (!isObject(value) || !(#state in value)) throw illegalInvocation("MessagePort");
      return value.#state;
    };
    internal.isMessagePort = (value) => isObject(value) && #state in value;
  }
  postMessage(message, options = undefined) {
    const s = stateOf(this);
    requireArguments(arguments.length, 1, "MessagePort.postMessage");
    post(this, s, message, toTransferList(options));
  }
  start() {
    const s = stateOf(this);
    if (s.enabled || s.detached) return;
    s.enabled = true;
    pump(s);
  }
  close() {
    const s = stateOf(this);
    s.detached = true;
    s.queue.clear();
    const { other } = s;
    if (other === null) return;
    s.other = other.other = null;
    if (other.enabled) enqueue(other, new Message(undefined, null, true, ownerOf(other)));
    else internal.startTimerFor(ownerOf(other), other.home.frame, 0, () => { fire(other.port, new Event("close")); });
  }
  get onmessage() { return stateOf(this).onmessage.value; }
  set onmessage(value) {
    const s = stateOf(this);
    setHandler(this, s.onmessage, "message", value);
    if (s.enabled || s.detached) return;
    s.enabled = true;
    pump(s);
  }
  get onmessageerror() { return stateOf(this).onmessageerror.value; }
  set onmessageerror(value) { setHandler(this, stateOf(this).onmessageerror, "messageerror", value); }
  get onclose() { return stateOf(this).onclose.value; }
  set onclose(value) { setHandler(this, stateOf(this).onclose, "close", value); }
}
defineInterface(MessagePort, "MessagePort");

// toTransferList distinguishes the overloads: a sequence, or a dictionary with a sequence.
function toTransferList(options) {
  const what = "MessagePort.postMessage";
  if (isObject(options)) {
    const method = options[SymbolIterator];
    if (method !== undefined && method !== null) {
      if (typeof method !== "function") throw new TypeError(`${what}: transfer is not iterable`);
      return internal.toObjects(options, what, method);
    }
  }
  const given = toDictionary(options, `${what}: the options`)?.transfer;
  return given === undefined ? [] : internal.toObjects(given, what);
}

// post is "message port post message steps". It drops a message that transfers its own target, and a message without
// a target.
function post(port, s, message, list) {
  const target = s.other;
  let doomed = target === null;
  for (let i = 0; i < list.length; i++) {
    if (list[i] === port) throw new DOMException("a port cannot be transferred by itself", "DataCloneError");
    if (target !== null && list[i] === target.port) doomed = true;
  }
  const transfer = internal.toTransfer(list, target === null ? null : target.home);
  const data = internal.cloneFor(message, transfer);
  if (!doomed && !isOver(s.home.run)) enqueue(target, new Message(data, transfer === null ? [] : transfer.madePorts, false, ownerOf(target)));
}

// WireEnd is one end of a wire. A wire is two entangled ports without objects that handler code can see.
class WireEnd {
  state;
  constructor(home) {
    this.state = new PortState(home, null);
  }
  receive(callback) {
    this.state.receive = callback;
    this.state.enabled = true;
    pump(this.state);
  }
  // send clones the value and throws the errors of the clone. It sends nothing to an end that was closed.
  send(kind, value) {
    const data = { __proto__: null, kind, value: internal.structuredClone(value) };
    const { home, other } = this.state;
    if (other !== null && !isOver(home.run)) enqueue(other, new Message(data, null, false, ownerOf(other)));
  }
  // close does not remove the sent messages: they still arrive.
  close() {
    const s = this.state;
    s.detached = true;
    s.queue.clear();
    if (s.other !== null) s.other = s.other.other = null;
  }
}
sealedProto(WireEnd);

// newWire returns two ends. The second belongs to home, or to the acting run if home is null.
internal.newWire = (home) => {
  const here = new WireEnd(internal.here());
  const there = new WireEnd(home ?? internal.here());
  here.state.other = there.state;
  there.state.other = here.state;
  return { __proto__: null, here, there };
};

primordials.ObjectAssign(internal, { Message, PortState, messageOwner: ownerOf });

internal.newPort = (home) => new MessagePort(TOKEN, home);
internal.isPortDetached = (port) => stateOf(port).detached;

// movePort moves the state of one port to another.
internal.movePort = (from, to) => {
  const s = stateOf(from);
  const t = stateOf(to);
  s.detached = true;
  t.other = s.other;
  if (t.other !== null) t.other.other = t;
  s.other = null;
  for (let m = s.queue.shift(); m !== undefined; m = s.queue.shift()) t.queue.push(m);
};

class MessageChannel {
  #port1;
  #port2;
  constructor() {
    const home = internal.here();
    this.#port1 = internal.newPort(home);
    this.#port2 = internal.newPort(home);
    const one = stateOf(this.#port1);
    const two = stateOf(this.#port2);
    one.other = two;
    two.other = one;
  }
  get port1() {
    if (!(#port1 in this)) throw illegalInvocation("MessageChannel");
    return this.#port1;
  }
  get port2() {
    if (!(#port1 in this)) throw illegalInvocation("MessageChannel");
    return this.#port2;
  }
}
defineInterface(MessageChannel, "MessageChannel");
