// dom/uncaught.js handles errors and rejections that no code of a worker handles: by an event of the global object, and
// by a log line.

"use strict";

const {
  WeakMap, WeakMapPrototypeDelete, WeakMapPrototypeGet, WeakMapPrototypeHas, WeakMapPrototypeSet, globalThis,
} = primordials;
const { describe, fire, hasListeners, sendOps } = internal;
const { send } = host;

let reporting = false;

// reportException is HTML's "report an exception". It fires an error event and writes a log line unless a listener
// prevents that.
internal.reportException = (error) => {
  const described = describe(error);
  if (!reporting && hasListeners(globalThis, "error")) {
    reporting = true;
    let kept = true;
    try {
      kept = fire(globalThis, new internal.ErrorEvent("error",
        { __proto__: null, message: described.text, error, cancelable: true, bubbles: false, composed: false,
          colno: 0, lineno: 0, filename: "" }));
    } finally {
      reporting = false;
    }
    if (!kept) return;
  }
  internal.speakFor(internal.acting());
  send(sendOps.UNCAUGHT, described.text, described.stack);
};

internal.reportBy(internal.reportException);

const reported = new WeakMap(); // promise → reason, of reported rejections that code may still handle late

// unhandled handles a rejection that no code handles.
internal.unhandled = (promise, reason) => {
  WeakMapPrototypeSet(reported, promise, reason);
  if (hasListeners(globalThis, "unhandledrejection")) {
    const kept = fire(globalThis, new internal.PromiseRejectionEvent("unhandledrejection",
      { __proto__: null, promise, reason, cancelable: true, bubbles: false, composed: false }));
    if (!kept) return;
  }
  const described = describe(reason);
  internal.speakFor(internal.acting());
  send(sendOps.UNCAUGHT, described.text, described.stack);
};

// handledLate handles that code handles a rejection which was reported.
internal.handledLate = (promise) => {
  if (!WeakMapPrototypeHas(reported, promise)) return;
  const reason = WeakMapPrototypeGet(reported, promise);
  WeakMapPrototypeDelete(reported, promise);
  if (!hasListeners(globalThis, "rejectionhandled")) return;
  fire(globalThis, new internal.PromiseRejectionEvent("rejectionhandled",
    { __proto__: null, promise, reason, cancelable: false, bubbles: false, composed: false }));
};
