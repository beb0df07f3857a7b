// fetch/lookup.js has Go look up the addresses of names.

"use strict";

const { List, Map, MapPrototypeDelete, MapPrototypeForEach, MapPrototypeGet, MapPrototypeSet, TypeError } = primordials;
const { sendOps } = internal;
const { send } = host;

const waiting = new Map(); // reqId → {run, frame, done, by} of a name whose addresses have not come

// lookUp calls done(addresses, failure) later. addresses is a list of strings. failure is null, a code of Node as
// ENOTFOUND, or a text. by is the object that asks, or null.
internal.lookUp = (name, done, by) => {
  const run = internal.acting();
  if (run === null || run === internal.background()) throw new TypeError("dns: no event runs; a name is looked up for an event");
  if (run.over) throw new TypeError("dns: the event is over");
  const id = internal.nextRequestId();
  internal.speakFor(run);
  send(sendOps.LOOK_UP, id, name);
  MapPrototypeSet(waiting, id, { __proto__: null, run, frame: internal.inheritFrame(), done, by });
};

// cancelLookups ends what an object has asked for in the event that runs. Go stops, and what it answers comes too late.
internal.cancelLookups = (by) => {
  const run = internal.acting();
  const ids = new List();
  MapPrototypeForEach(waiting, (entry, id) => { if (entry.by === by && entry.run === run) ids[ids.length] = id; });
  if (ids.length > 0) internal.speakFor(run);
  for (let i = 0; i < ids.length; i++) {
    send(sendOps.FETCH_ABORT, ids[i]);
    internal.queueMicrotask(() => { internal.lookedUp(ids[i], null, "ECANCELLED"); });
  }
};

internal.lookedUp = (id, addresses, failure) => {
  const entry = MapPrototypeGet(waiting, id);
  if (entry === undefined) return;
  MapPrototypeDelete(waiting, id);
  internal.callIn(entry.frame, entry.done, undefined, [addresses, failure]);
};

internal.onForget((run) => { internal.forgetIn(waiting, run); });
