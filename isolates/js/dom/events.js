// dom/events.js is Event and EventTarget of the DOM standard, without a tree: the path of a target has only the
// target itself. The global object is an EventTarget too. Its listeners are stored here, and the code finds them
// without a property of the global object.

"use strict";

const {
  ObjectCreate, ObjectDefineProperty, ObjectSetPrototypeOf, ReflectApply, ReflectGetOwnPropertyDescriptor, TypeError, globalThis, sealedProto,
} = primordials;
const {
  DOMException, defineConstants, defineInterface, defineOperation, illegalInvocation, isObject, requireArguments,
  toDOMString, toDictionary,
} = internal;

class EventState {
  type;
  bubbles;
  cancelable;
  composed;
  target = null;
  currentTarget = null;
  phase = 0;
  stopped = false;
  stoppedImmediately = false;
  canceled = false;
  passive = false;
  dispatching = false;
  trusted = false;
  timeStamp = 0;
  constructor(type, bubbles, cancelable, composed) {
    this.type = type;
    this.bubbles = bubbles;
    this.cancelable = cancelable;
    this.composed = composed;
    this.timeStamp = host.now();
  }
}
sealedProto(EventState);

let eventState;

class Event {
  #state;
  constructor(type, eventInitDict = undefined) {
    requireArguments(arguments.length, 1, "new Event");
    const name = toDOMString(type);
    const init = toDictionary(eventInitDict, "the event's init");
    this.#state = init === undefined ? new EventState(name, false, false, false)
      : new EventState(name, !!init.bubbles, !!init.cancelable, !!init.composed);
    ObjectDefineProperty(this, "isTrusted", isTrusted);
  }
  static {
    eventState = (event) => {
      if (!isObject(event) || !(#state in event)) throw illegalInvocation("Event");
      return event.#state;
    };
    internal.isEvent = (value) => isObject(value) && #state in value;
  }
  get type() { return eventState(this).type; }
  get target() { return eventState(this).target; }
  get srcElement() { return eventState(this).target; }
  get currentTarget() { return eventState(this).currentTarget; }
  composedPath() {
    const s = eventState(this);
    return s.currentTarget === null ? [] : [s.currentTarget];
  }
  get eventPhase() { return eventState(this).phase; }
  stopPropagation() { eventState(this).stopped = true; }
  get cancelBubble() { return eventState(this).stopped; }
  set cancelBubble(value) { if (value) eventState(this).stopped = true; else eventState(this); }
  stopImmediatePropagation() {
    const s = eventState(this);
    s.stopped = s.stoppedImmediately = true;
  }
  get bubbles() { return eventState(this).bubbles; }
  get cancelable() { return eventState(this).cancelable; }
  get returnValue() { return !eventState(this).canceled; }
  set returnValue(value) { if (!value) cancel(eventState(this)); else eventState(this); }
  preventDefault() { cancel(eventState(this)); }
  get defaultPrevented() { return eventState(this).canceled; }
  get composed() { return eventState(this).composed; }
  get timeStamp() { return eventState(this).timeStamp; }
  initEvent(type, bubbles = false, cancelable = false) {
    const s = eventState(this);
    requireArguments(arguments.length, 1, "Event.initEvent");
    const name = toDOMString(type);
    if (s.dispatching) return;
    s.type = name;
    s.bubbles = !!bubbles;
    s.cancelable = !!cancelable;
    s.stopped = s.stoppedImmediately = s.canceled = s.trusted = false;
    s.target = null;
  }
}

// isTrusted is [LegacyUnforgeable]: an own accessor with the same function on every event.
const isTrusted = {
  __proto__: null,
  get: ReflectGetOwnPropertyDescriptor({ get isTrusted() { return eventState(this).trusted; } }, "isTrusted").get,
  set: undefined, enumerable: true, configurable: false,
};

function cancel(s) {
  if (s.cancelable && !s.passive) s.canceled = true;
}

defineInterface(Event, "Event");
defineConstants(Event, { __proto__: null, NONE: 0, CAPTURING_PHASE: 1, AT_TARGET: 2, BUBBLING_PHASE: 3 });

// ---- targets ----

let lastNumber = 0;

class Listener {
  number = ++lastNumber;
  type;
  callback;
  capture;
  once;
  passive;
  removed = false;
  signal = null;
  next = null;
  constructor(type, callback, capture, once, passive) {
    this.type = type;
    this.callback = callback;
    this.capture = capture;
    this.once = once;
    this.passive = passive;
  }
}
sealedProto(Listener);

// Listeners is a linked list, so that dispatch can walk it while callbacks add and remove listeners.
class Listeners {
  head = null;
}
sealedProto(Listeners);

let listenersOf;

class EventTarget {
  #listeners = new Listeners();
  static {
    listenersOf = (target) => {
      if (target === globalThis || target === undefined || target === null) return globalListeners;
      if (!isObject(target) || !(#listeners in target)) throw illegalInvocation("EventTarget");
      return target.#listeners;
    };
    internal.isEventTarget = (value) => value === globalThis || (isObject(value) && #listeners in value);
  }
  addEventListener(type, callback, options = undefined) {
    const list = listenersOf(this);
    requireArguments(arguments.length, 2, "EventTarget.addEventListener");
    add(list, toDOMString(type), toListener(callback), options);
  }
  removeEventListener(type, callback, options = undefined) {
    const list = listenersOf(this);
    requireArguments(arguments.length, 2, "EventTarget.removeEventListener");
    const name = toDOMString(type);
    const fn = toListener(callback);
    const capture = isObject(options) ? !!options.capture : !!options;
    const found = find(list, name, fn, capture);
    if (found !== null) remove(list, found);
  }
  dispatchEvent(event) {
    listenersOf(this);
    requireArguments(arguments.length, 1, "EventTarget.dispatchEvent");
    if (!internal.isEvent(event)) throw new TypeError("EventTarget.dispatchEvent: the argument is not an Event");
    const s = eventState(event);
    if (s.dispatching) throw new DOMException("the event is being dispatched already", "InvalidStateError");
    s.trusted = false;
    return dispatch(this ?? globalThis, event, internal.reportException, undefined);
  }
}
defineInterface(EventTarget, "EventTarget");
const globalListeners = new Listeners();

function toListener(callback) {
  if (callback === null || callback === undefined) return null;
  if (!isObject(callback)) throw new TypeError("the event listener is neither a function nor an object");
  return callback;
}

function add(list, type, callback, options) {
  let capture = false;
  let once = false;
  let passive = false;
  let signal;
  if (isObject(options)) {
    capture = !!options.capture;
    once = !!options.once;
    passive = !!options.passive;
    signal = options.signal;
    if (signal !== undefined && !internal.isAbortSignal(signal)) {
      throw new TypeError("EventTarget.addEventListener: the signal is not an AbortSignal");
    }
  } else {
    capture = !!options;
  }
  if (signal !== undefined && internal.signalState(signal).aborted) return;
  if (callback === null || find(list, type, callback, capture) !== null) return;
  const listener = new Listener(type, callback, capture, once, passive);
  append(list, listener);
  if (signal !== undefined) internal.onAbort(signal, () => remove(list, listener));
}

function append(list, listener) {
  if (list.head === null) {
    list.head = listener;
    return;
  }
  let last = list.head;
  while (last.next !== null) last = last.next;
  last.next = listener;
}

function find(list, type, callback, capture) {
  for (let l = list.head; l !== null; l = l.next) {
    if (l.type === type && l.callback === callback && l.capture === capture) return l;
  }
  return null;
}

// remove unlinks a listener but keeps the listener's own next, so that a walk at this listener can continue.
function remove(list, listener) {
  listener.removed = true;
  if (list.head === listener) {
    list.head = listener.next;
    return;
  }
  for (let l = list.head; l !== null; l = l.next) {
    if (l.next === listener) {
      l.next = listener.next;
      return;
    }
  }
}

function hasListeners(target, type) {
  for (let l = listenersOf(target).head; l !== null; l = l.next) {
    if (l.type === type) return true;
  }
  return false;
}

// dispatch runs the listeners of one target, the capturing ones first. onThrow gets the errors that listeners throw,
// and onReturn gets their return values.
function dispatch(target, event, onThrow, onReturn) {
  const s = eventState(event);
  s.dispatching = true;
  s.target = s.currentTarget = target;
  s.phase = 2;
  const list = listenersOf(target);
  if (!s.stopped) invoke(list, s, event, target, true, onThrow, onReturn);
  if (!s.stopped) invoke(list, s, event, target, false, onThrow, onReturn);
  s.phase = 0;
  s.currentTarget = null;
  s.dispatching = s.stopped = s.stoppedImmediately = false;
  return !s.canceled;
}

function invoke(list, s, event, target, capture, onThrow, onReturn) {
  const newest = lastNumber; // dispatch does not call listeners that are added while it runs
  for (let l = list.head; l !== null; l = l.next) {
    if (l.number <= newest && l.type === s.type && l.capture === capture && !l.removed) {
      if (l.once) remove(list, l);
      s.passive = l.passive;
      callListener(l.callback, event, target, onThrow, onReturn);
      s.passive = false;
      if (s.stoppedImmediately) return;
    }
  }
}

function callListener(callback, event, target, onThrow, onReturn) {
  try {
    let result;
    if (typeof callback === "function") {
      result = ReflectApply(callback, target, [event]);
    } else {
      const handle = callback.handleEvent;
      if (typeof handle !== "function") throw new TypeError("the event listener has no handleEvent function");
      result = ReflectApply(handle, callback, [event]);
    }
    if (onReturn !== undefined) onReturn(result);
  } catch (error) {
    onThrow(error);
  }
}

// fire dispatches a trusted event that the runtime made.
function fire(target, event) {
  eventState(event).trusted = true;
  return dispatch(target, event, internal.reportException, undefined);
}

// ---- event handler attributes, for example onabort ----

class HandlerSlot {
  value = null;
  listener = null; // the listener that calls the value, while there is a value
}
sealedProto(HandlerSlot);

// setHandler is the setter of an on<type> attribute. process(event) returns whether the event is canceled. A slot
// keeps its place among the listeners until it is set to null.
function setHandler(target, slot, type, value, process = undefined) {
  slot.value = isObject(value) ? value : null;
  const list = listenersOf(target);
  if (slot.value === null) {
    if (slot.listener !== null) remove(list, slot.listener);
    slot.listener = null;
    return;
  }
  if (slot.listener !== null) return;
  const callback = function (event) {
    if (typeof slot.value !== "function") return;
    const canceled = process === undefined ? ReflectApply(slot.value, this, [event]) === false : process(event);
    if (canceled) cancel(eventState(event));
  };
  slot.listener = new Listener(type, callback, false, false, false);
  append(list, slot.listener);
}

// The global object has its own versions of the three operations, because they check the value of this.
const operations = {
  addEventListener(type, callback, options = undefined) {
    internal.checkGlobal(this);
    requireArguments(arguments.length, 2, "addEventListener");
    add(globalListeners, toDOMString(type), toListener(callback), options);
  },
  removeEventListener(type, callback, options = undefined) {
    internal.checkGlobal(this);
    requireArguments(arguments.length, 2, "removeEventListener");
    const found = find(globalListeners, toDOMString(type), toListener(callback),
      isObject(options) ? !!options.capture : !!options);
    if (found !== null) remove(globalListeners, found);
  },
  dispatchEvent(event) {
    internal.checkGlobal(this);
    requireArguments(arguments.length, 1, "dispatchEvent");
    if (!internal.isEvent(event)) throw new TypeError("dispatchEvent: the argument is not an Event");
    const s = eventState(event);
    if (s.dispatching) throw new DOMException("the event is being dispatched already", "InvalidStateError");
    s.trusted = false;
    return dispatch(globalThis, event, internal.reportException, undefined);
  },
};
defineOperation("addEventListener", operations.addEventListener);
defineOperation("removeEventListener", operations.removeEventListener);
defineOperation("dispatchEvent", operations.dispatchEvent);

// The global object inherits from EventTarget, like every global scope.
const scope = ObjectCreate(EventTarget.prototype);
internal.defineTag(scope, "global");
ObjectSetPrototypeOf(globalThis, scope);

// eventListeners lists the listeners of a target for this type.
internal.eventListeners = (target, type) => {
  const out = [];
  for (let l = listenersOf(target).head; l !== null; l = l.next) {
    if (l.type === type && !l.removed) internal.appendArray(out, l.callback);
  }
  return out;
};

primordials.ObjectAssign(internal, { Event, EventTarget, dispatch, fire, hasListeners, setHandler, HandlerSlot, eventState, initEvent: Event.prototype.initEvent });
