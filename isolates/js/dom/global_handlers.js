// dom/global_handlers.js is onerror, onunhandledrejection and onrejectionhandled of the global object.

"use strict";

const { ObjectDefineProperty, ReflectApply, ReflectGetOwnPropertyDescriptor, globalThis } = primordials;
const { HandlerSlot, checkGlobal, setHandler } = internal;

function define(members) {
  const name = primordials.ReflectOwnKeys(members)[0];
  ObjectDefineProperty(globalThis, name,
    { __proto__: null, ...ReflectGetOwnPropertyDescriptor(members, name), enumerable: true, configurable: true });
}

// onerror is an OnErrorEventHandler. For an ErrorEvent it gets five arguments, and a return value of true cancels the
// event.
const error = new HandlerSlot();
define({
  get onerror() { checkGlobal(this); return error.value; },
  set onerror(value) {
    checkGlobal(this);
    setHandler(globalThis, error, "error", value, onError);
  },
});

function onError(event) {
  const parts = internal.errorEventParts(event);
  if (parts === undefined) return ReflectApply(error.value, globalThis, [event]) === false;
  const { message, filename, lineno, colno } = parts;
  return ReflectApply(error.value, globalThis, [message, filename, lineno, colno, parts.error]) === true;
}

const unhandled = new HandlerSlot();
define({
  get onunhandledrejection() { checkGlobal(this); return unhandled.value; },
  set onunhandledrejection(value) { checkGlobal(this); setHandler(globalThis, unhandled, "unhandledrejection", value); },
});

const handled = new HandlerSlot();
define({
  get onrejectionhandled() { checkGlobal(this); return handled.value; },
  set onrejectionhandled(value) { checkGlobal(this); setHandler(globalThis, handled, "rejectionhandled", value); },
});
