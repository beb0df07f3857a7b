// dom/event_types.js holds the events that carry data: CustomEvent, ErrorEvent, PromiseRejectionEvent, CloseEvent.

"use strict";

const { ReflectApply, TypeError } = primordials;
const {
  Event, defineInterface, illegalInvocation, initEvent, requireArguments, toDOMString, toDictionary, toUSVString, toUnsignedLong,
  toUnsignedShort,
} = internal;

class CustomEvent extends Event {
  #detail;
  constructor(type, eventInitDict = undefined) {
    requireArguments(arguments.length, 1, "new CustomEvent");
    super(type, eventInitDict);
    const detail = toDictionary(eventInitDict)?.detail;
    this.#detail = detail === undefined ? null : detail;
  }
  get detail() {
    if (!(#detail in this)) throw illegalInvocation("CustomEvent");
    return this.#detail;
  }
  initCustomEvent(type, bubbles = false, cancelable = false, detail = null) {
    if (!(#detail in this)) throw illegalInvocation("CustomEvent");
    requireArguments(arguments.length, 1, "CustomEvent.initCustomEvent");
    if (internal.eventState(this).dispatching) return;
    ReflectApply(initEvent, this, [type, bubbles, cancelable]);
    this.#detail = detail;
  }
}
defineInterface(CustomEvent, "CustomEvent");

class ErrorEvent extends Event {
  #message = "";
  #filename = "";
  #lineno = 0;
  #colno = 0;
  #error = undefined;
  constructor(type, eventInitDict = undefined) {
    requireArguments(arguments.length, 1, "new ErrorEvent");
    super(type, eventInitDict);
    const init = toDictionary(eventInitDict);
    if (init === undefined) return;
    const { colno } = init;
    if (colno !== undefined) this.#colno = toUnsignedLong(colno);
    this.#error = init.error;
    const { filename } = init;
    if (filename !== undefined) this.#filename = toUSVString(filename);
    const { lineno } = init;
    if (lineno !== undefined) this.#lineno = toUnsignedLong(lineno);
    const { message } = init;
    if (message !== undefined) this.#message = toDOMString(message);
  }
  static {
    // errorEventParts returns the data of an ErrorEvent, or undefined for any other value.
    internal.errorEventParts = (value) => (#message in value ? { __proto__: null, message: value.#message, filename: value.#filename,
      lineno: value.#lineno, colno: value.#colno, error: value.#error } : undefined);
  }
  get message() { check(#message in this, "ErrorEvent"); return this.#message; }
  get filename() { check(#message in this, "ErrorEvent"); return this.#filename; }
  get lineno() { check(#message in this, "ErrorEvent"); return this.#lineno; }
  get colno() { check(#message in this, "ErrorEvent"); return this.#colno; }
  get error() { check(#message in this, "ErrorEvent"); return this.#error; }
}
defineInterface(ErrorEvent, "ErrorEvent");

class PromiseRejectionEvent extends Event {
  #promise;
  #reason;
  constructor(type, eventInitDict) {
    requireArguments(arguments.length, 2, "new PromiseRejectionEvent");
    super(type, eventInitDict);
    const { promise, reason } = toDictionary(eventInitDict) ?? { promise: undefined };
    if (!internal.isObject(promise)) throw new TypeError("new PromiseRejectionEvent: the promise of the init is not an object");
    this.#promise = promise;
    this.#reason = reason;
  }
  get promise() { check(#promise in this, "PromiseRejectionEvent"); return this.#promise; }
  get reason() { check(#promise in this, "PromiseRejectionEvent"); return this.#reason; }
}
defineInterface(PromiseRejectionEvent, "PromiseRejectionEvent");

class CloseEvent extends Event {
  #wasClean = false;
  #code = 0;
  #reason = "";
  constructor(type, eventInitDict = undefined) {
    requireArguments(arguments.length, 1, "new CloseEvent");
    super(type, eventInitDict);
    const init = toDictionary(eventInitDict);
    if (init === undefined) return;
    const { code } = init;
    if (code !== undefined) this.#code = toUnsignedShort(code);
    const { reason } = init;
    if (reason !== undefined) this.#reason = toUSVString(reason);
    this.#wasClean = !!init.wasClean;
  }
  get wasClean() { check(#reason in this, "CloseEvent"); return this.#wasClean; }
  get code() { check(#reason in this, "CloseEvent"); return this.#code; }
  get reason() { check(#reason in this, "CloseEvent"); return this.#reason; }
}
defineInterface(CloseEvent, "CloseEvent");

function check(ok, name) {
  if (!ok) throw illegalInvocation(name);
}

primordials.ObjectAssign(internal, { CloseEvent, CustomEvent, ErrorEvent, PromiseRejectionEvent });
