// bindings/call.js calls the methods of bindings. Go carries them out (isolates/bindings).

"use strict";

const { Error, Map, MapPrototypeDelete, MapPrototypeGet, MapPrototypeSet } = primordials;
const { newCapability, sendOps } = internal;
const { send } = host;

const waiting = new Map(); // reqId → {capability, convert, run} of a call that has no answer yet

// callBinding calls a method of a binding. texts is a List of strings, body a string, bytes or a Kept. Go answers with
// a List of strings and with bytes, and convert makes of them what the promise gives. It is rejected with what convert
// throws, or with the Error that Go returned. If keeps, convert may get a Kept in place of bytes.
internal.callBinding = (kind, name, method, texts, body, convert, keeps = false) => {
  if (internal.eventIsOver()) throw new Error(`${name}.${method}: the event is over`);
  const id = internal.nextRequestId();
  const capability = newCapability();
  const run = internal.acting();
  MapPrototypeSet(waiting, id, { __proto__: null, capability, convert, run, at: internal.stackHere() });
  internal.speakFor(run);
  const kept = internal.isKept(body);
  send(sendOps.CALL, id, kind, name, method, texts, kept ? "" : body, keeps && run !== null, kept ? body.id : -1);
  return capability.promise;
};

// called settles one call. error is null when the method succeeded.
internal.called = (id, error, texts, body) => {
  const entry = MapPrototypeGet(waiting, id);
  if (entry === undefined) return;
  MapPrototypeDelete(waiting, id);
  const { at, capability, convert, run } = entry;
  if (error !== null) {
    capability.reject(internal.withStack(at, new Error(error)));
    return;
  }
  let value;
  try {
    value = convert(texts, typeof body === "number" ? internal.newKept(run, id, body) : body);
  } catch (thrown) {
    capability.reject(internal.withStack(at, thrown));
    return;
  }
  capability.resolve(value);
};

internal.onForget((run) => { internal.forgetIn(waiting, run); });
