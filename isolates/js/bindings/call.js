// bindings/call.js calls the methods of bindings. Go carries them out (isolates/bindings).

"use strict";

const { Error, Map, MapPrototypeDelete, MapPrototypeGet, MapPrototypeSet } = primordials;
const { newCapability, sendOps } = internal;
const { send } = host;

const waiting = new Map(); // reqId → {capability, convert, run} of a call that has no answer yet

// callBinding calls a method of a binding. texts is a List of strings, body a string or bytes. Go answers with a List of
// strings and with bytes, and convert makes of them what the promise gives. It is rejected with what convert throws, or
// with the Error that Go returned.
internal.callBinding = (kind, name, method, texts, body, convert) => {
  if (internal.eventIsOver()) throw new Error(`${name}.${method}: the event is over`);
  const id = internal.nextRequestId();
  const capability = newCapability();
  const run = internal.acting();
  MapPrototypeSet(waiting, id, { __proto__: null, capability, convert, run });
  internal.speakFor(run);
  send(sendOps.CALL, id, kind, name, method, texts, body);
  return capability.promise;
};

// called settles one call. error is null when the method succeeded.
internal.called = (id, error, texts, body) => {
  const entry = MapPrototypeGet(waiting, id);
  if (entry === undefined) return;
  MapPrototypeDelete(waiting, id);
  const { capability, convert } = entry;
  if (error !== null) {
    capability.reject(new Error(error));
    return;
  }
  let value;
  try {
    value = convert(texts, body);
  } catch (thrown) {
    capability.reject(thrown);
    return;
  }
  capability.resolve(value);
};

internal.onForget((run) => { internal.forgetIn(waiting, run); });
