// dom/broadcast_channel.js is BroadcastChannel of HTML, among the channels of one context. A posted message reaches
// no other context, so it reaches no other worker and no other owner. A channel belongs to the event that made it, as
// a port does (dom/message_port.js). Its waiting messages are in the heap.

"use strict";

const { List, Map, MapPrototypeDelete, MapPrototypeGet, MapPrototypeSet, Queue, sealedProto } = primordials;
const {
  DOMException, EventTarget, Message, PortState, QuotaExceededError, defineInterface, fire, illegalInvocation, isObject, messageOwner, requireArguments, setHandler, toDOMString,
} = internal;

const MAX_CHANNELS = 1000; // the maximum of open channels in a context

let channels = new List(); // the open channels, in the order of their creation
let stateOf;

function isOver(run) {
  return run !== null && run.over;
}

// keepChannels removes all channels for which isKept is false.
function keepChannels(isKept) {
  const kept = new List();
  for (let i = 0; i < channels.length; i++) {
    if (isKept(channels[i])) kept[kept.length] = channels[i];
  }
  channels = kept;
}

// Deliveries are the messages to the channels of a run, in the order in which they were posted.
class Deliveries {
  waiting = new Queue();
  underWay = false; // a task will deliver one
}
sealedProto(Deliveries);

class Delivery {
  to;
  message;
  constructor(to, message) {
    this.to = to;
    this.message = message;
  }
}
sealedProto(Delivery);

const deliveries = new Map(); // run → Deliveries

function enqueue(to, message) {
  let all = MapPrototypeGet(deliveries, message.run);
  if (all === undefined) MapPrototypeSet(deliveries, message.run, all = new Deliveries());
  all.waiting.push(new Delivery(to, message));
  if (!all.underWay) deliverNext(all);
}

// deliverNext makes a task that delivers one message.
function deliverNext(all) {
  const next = all.waiting.shift();
  all.underWay = next !== undefined;
  if (next === undefined) return;
  const { to, message } = next;
  internal.startTimerFor(message.run, to.home.frame, 0, () => {
    deliverNext(all);
    if (!to.detached) fire(to.port, internal.newMessageEvent("message", message.data, "", "", message.ports));
  });
}

internal.onForget((run) => {
  MapPrototypeDelete(deliveries, run);
  if (channels.length > 0) keepChannels((s) => s.home.run !== run);
});

class BroadcastChannel extends EventTarget {
  #state;
  #name;
  constructor(name) {
    requireArguments(arguments.length, 1, "new BroadcastChannel");
    const text = toDOMString(name);
    super();
    if (channels.length >= MAX_CHANNELS) {
      throw new QuotaExceededError(`new BroadcastChannel: ${MAX_CHANNELS} channels are open already, which is the most`);
    }
    this.#name = text;
    this.#state = new PortState(internal.here(), this);
    channels[channels.length] = this.#state;
  }
  static {
    stateOf = (value) => {
      if (!isObject(value) || !(#state in value)) throw illegalInvocation("BroadcastChannel");
      return value.#state;
    };
    internal.channelName = (s) => s.port.#name;
  }
  get name() {
    stateOf(this);
    return this.#name;
  }
  postMessage(message) {
    const s = stateOf(this);
    requireArguments(arguments.length, 1, "BroadcastChannel.postMessage");
    if (s.detached) throw new DOMException("BroadcastChannel.postMessage: the channel is closed", "InvalidStateError");
    post(s, this.#name, message);
  }
  close() {
    const s = stateOf(this);
    if (s.detached) return;
    s.detached = true;
    keepChannels((other) => other !== s);
  }
  get onmessage() { return stateOf(this).onmessage.value; }
  set onmessage(value) { setHandler(this, stateOf(this).onmessage, "message", value); }
  get onmessageerror() { return stateOf(this).onmessageerror.value; }
  set onmessageerror(value) { setHandler(this, stateOf(this).onmessageerror, "messageerror", value); }
}
defineInterface(BroadcastChannel, "BroadcastChannel");

// post clones the message once for the first receiver. That clone can run handler code. Then it clones the copy for
// each other receiver, and these clones run no handler code.
function post(s, name, message) {
  const first = internal.structuredClone(message);
  if (isOver(s.home.run)) return;
  let taken = false;
  for (let i = 0; i < channels.length; i++) {
    const to = channels[i];
    if (to === s || internal.channelName(to) !== name || isOver(to.home.run)) continue;
    enqueue(to, new Message(taken ? internal.structuredClone(first) : first, new List(), false, messageOwner(to)));
    taken = true;
  }
}
