// dom/message_event.js is MessageEvent of HTML.

"use strict";

const { ObjectFreeze, ReflectApply, TypeError } = primordials;
const {
  Event, appendArray, defineInterface, illegalInvocation, initEvent, isObject, requireArguments, toDOMString, toDictionary, toSequence,
  toUSVString,
} = internal;

function frozen(list) {
  const array = [];
  for (let i = 0; i < list.length; i++) appendArray(array, list[i]);
  return ObjectFreeze(array);
}

function toPorts(value, what) {
  return toSequence(value, (port) => {
    if (!internal.isMessagePort(port)) throw new TypeError(`${what}: an item of ports is not a MessagePort`);
    return port;
  }, `${what}: ports`);
}

function toSource(value, what) {
  if (value === null || value === undefined) return null;
  if (!internal.isMessagePort(value)) throw new TypeError(`${what}: the source is not a MessagePort`);
  return value;
}

let making = null; // the data of the next event that the runtime makes; it does not pass through super()

class MessageEvent extends Event {
  #data = null;
  #origin = "";
  #lastEventId = "";
  #source = null;
  #ports;
  constructor(type, eventInitDict = undefined) {
    const own = making;
    making = null;
    requireArguments(arguments.length, 1, "new MessageEvent");
    super(type, eventInitDict);
    if (own !== null) {
      this.#data = own.data;
      this.#origin = own.origin;
      this.#lastEventId = own.lastEventId;
      this.#ports = own.ports;
      return;
    }
    const init = toDictionary(eventInitDict);
    const data = init?.data;
    if (data !== undefined) this.#data = data;
    const lastEventId = init?.lastEventId;
    if (lastEventId !== undefined) this.#lastEventId = toDOMString(lastEventId);
    const origin = init?.origin;
    if (origin !== undefined) this.#origin = toUSVString(origin);
    const ports = init?.ports;
    this.#ports = frozen(ports === undefined ? [] : toPorts(ports, "new MessageEvent"));
    this.#source = toSource(init?.source, "new MessageEvent");
  }
  static {
    internal.newMessageEvent = (type, data, origin, lastEventId, ports) => {
      making = { __proto__: null, data, origin, lastEventId, ports: frozen(ports) };
      return new MessageEvent(type);
    };
  }
  get data() { check(#ports in this); return this.#data; }
  get origin() { check(#ports in this); return this.#origin; }
  get lastEventId() { check(#ports in this); return this.#lastEventId; }
  get source() { check(#ports in this); return this.#source; }
  get ports() { check(#ports in this); return this.#ports; }
  initMessageEvent(type, bubbles = false, cancelable = false, data = null, origin = "", lastEventId = "", source = null, ports = undefined) {
    check(isObject(this) && #ports in this);
    requireArguments(arguments.length, 1, "MessageEvent.initMessageEvent");
    const name = toDOMString(type);
    const from = toUSVString(origin);
    const id = toDOMString(lastEventId);
    const by = toSource(source, "MessageEvent.initMessageEvent");
    const list = frozen(ports === undefined ? [] : toPorts(ports, "MessageEvent.initMessageEvent"));
    if (internal.eventState(this).dispatching) return;
    ReflectApply(initEvent, this, [name, bubbles, cancelable]);
    this.#data = data;
    this.#origin = from;
    this.#lastEventId = id;
    this.#source = by;
    this.#ports = list;
  }
}
defineInterface(MessageEvent, "MessageEvent");

function check(ok) {
  if (!ok) throw illegalInvocation("MessageEvent");
}
