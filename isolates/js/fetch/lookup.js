// fetch/lookup.js has Go look up the addresses of names.

"use strict";

const { Map, MapPrototypeDelete, MapPrototypeGet, MapPrototypeSet, TypeError } = primordials;
const { sendOps } = internal;
const { send } = host;

const waiting = new Map(); // reqId → {run, frame, done} of a name whose addresses have not come

// lookUp calls done(addresses, failure) later. addresses is a list of strings. failure is null, a code of Node as
// ENOTFOUND, or a text. It returns the id.
internal.lookUp = (name, done) => {
  const run = internal.acting();
  if (run === null || run === internal.background()) throw new TypeError("dns: no event runs; a name is looked up for an event");
  if (run.over) throw new TypeError("dns: the event is over");
  const id = internal.nextRequestId();
  internal.speakFor(run);
  send(sendOps.LOOK_UP, id, name);
  MapPrototypeSet(waiting, id, { __proto__: null, run, frame: internal.inheritFrame(), done });
  return id;
};

internal.lookedUp = (id, addresses, failure) => {
  const entry = MapPrototypeGet(waiting, id);
  if (entry === undefined) return;
  MapPrototypeDelete(waiting, id);
  internal.callIn(entry.frame, entry.done, undefined, [addresses, failure]);
};

internal.onForget((run) => { internal.forgetIn(waiting, run); });
