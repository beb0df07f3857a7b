// runtime/runs.js keeps one object per event, and knows which of them acts. In a context that runs one event at a time that is
// the event; in a concurrent one (mode persistent) V8 carries a frame along from every promise to its reactions. Frames also
// carry the values of AsyncLocalStorage (runtime/async_context.js): in a context of the other kind they are used from the first one on.

"use strict";

const {
  Map, MapPrototypeClear, MapPrototypeDelete, MapPrototypeForEach, MapPrototypeGet, MapPrototypeGetSize, MapPrototypeSet,
  ReflectApply, sealedProto,
} = primordials;
const { sendOps } = internal;
const { frame, send, setFrame } = host;

// Run is one event's state. A run of a past event is over: nothing that still holds it can say anything.
class Run {
  id;
  kind; // a bit of HANDLERS
  answered = false;
  over = false;
  responded = false; // a listener called respondWith
  waiting = 0; // waitUntil promises not settled yet
  malformed = null; // why the payload did not parse
  request = null; // of a fetch event
  credit = 0; // bytes of the body that the requester takes in chunks; 0 = it wants it whole
  parts = null; // the stream of a request body in parts
  sender = null; // sends the body in chunks
  timeline = null; // its marks and measures, once there are any
  observers = null; // its PerformanceObservers, once there are any
  console = null; // its groups, counts and clocks, once there are any
  constructor(id, kind) {
    this.id = id;
    this.kind = kind;
  }
}
sealedProto(Run);

// Frame is what reactions inherit: whose they are, and the values that are set there.
class Frame {
  run;
  values; // a Binding of runtime/async_context.js, or null
  constructor(run, values) {
    this.run = run;
    this.values = values;
  }
}
sealedProto(Frame);

let concurrent = false;
let framed = false; // frames are used
let current = null; // the latest event, in a context that runs one at a time
let background = null; // in a concurrent context, what acts for no event: it has id 0 and is never over
let told = null; // the run that Go takes commands to be of, in this call of the entry
const live = new Map(); // id → Run, in a concurrent context

internal.isConcurrent = () => concurrent;

// runConcurrently is called before the module is loaded.
internal.runConcurrently = () => {
  concurrent = framed = true;
  background = new Run(0, 0);
};

// enter is called first in every call of the entry, leave last: no frame goes from one call to the next, nor to another
// context of the isolate.
internal.enter = (inFrame) => {
  told = null;
  if (framed && !inFrame) setFrame(undefined);
};
internal.leave = () => { if (framed) setFrame(undefined); };

// useFrames is called before the first value is set.
internal.useFrames = () => {
  if (framed) return;
  framed = true;
  setFrame(undefined); // whatever another context of the isolate left
};

// frameValues are the values that are set where the code runs that calls; withValues calls f with others, setValues leaves
// others to the rest of this turn. Whose the code is stays the same.
internal.frameValues = () => {
  const f = framed ? frame() : undefined;
  return f === undefined ? null : f.values;
};

internal.setValues = (values) => {
  setFrame(new Frame(internal.acting(), values));
};

internal.withValues = (values, f, self, args) => {
  const before = frame();
  setFrame(new Frame(before === undefined ? internal.acting() : before.run, values));
  try {
    return ReflectApply(f, self, args);
  } finally {
    setFrame(before);
  }
};

// acting is the run that acts now; null while the module of a context that runs one event at a time is loaded.
internal.acting = () => {
  if (!concurrent) return current;
  const f = frame();
  return f === undefined ? background : f.run;
};

internal.eventIsOver = () => {
  const run = internal.acting();
  return run !== null && run.over;
};

// speakFor makes Go take the next commands to be of this run.
internal.speakFor = (run) => {
  if (!concurrent) return;
  const speaker = run === null || run.over ? background : run;
  if (told === speaker) return;
  told = speaker;
  send(sendOps.ACTING, speaker.id);
};

// begin makes the run of a new event. In a context that runs one at a time, what the last one left is forgotten.
internal.begin = (id, kind) => {
  const run = new Run(id, kind);
  if (concurrent) {
    MapPrototypeSet(live, id, run);
    return run;
  }
  if (current !== null) {
    current.over = true;
    forget(current);
  }
  current = run;
  return run;
};

// end says that a run is over. In a concurrent context what it left is forgotten at once, else by the next begin.
internal.end = (run) => {
  if (run.over) return;
  run.over = true;
  if (!concurrent) return;
  MapPrototypeDelete(live, run.id);
  forget(run);
};

// runById is a run that is not over.
internal.runById = (id) => {
  if (concurrent) return MapPrototypeGet(live, id);
  return current !== null && current.id === id && !current.over ? current : undefined;
};

// endById is Go saying that it has ended runs.
internal.endById = (ids) => {
  for (let i = 0; i < ids.length; i++) {
    const run = MapPrototypeGet(live, ids[i]);
    if (run !== undefined) internal.end(run);
  }
};

// forgetIn drops from a map of id → {run} what is of a run that is over: where events come one at a time, that is all of it.
internal.forgetIn = (map, run) => {
  if (MapPrototypeGetSize(map) === 0) return; // clear would allocate
  if (!concurrent) MapPrototypeClear(map);
  else {
    MapPrototypeForEach(map, (entry, id) => { if (entry.run === run) MapPrototypeDelete(map, id); });
  }
};

function forget(run) {
  internal.forgetTimers(run);
  internal.forgetFetches(run);
  internal.forgetQueues(run);
  internal.forgetWork(run);
  internal.forgetSockets(run);
  internal.forgetChannels(run);
  internal.forgetBlobURLs(run);
}

// startIn calls f on behalf of run.
internal.startIn = (run, f) => {
  if (!concurrent) {
    f(run);
    return;
  }
  setFrame(new Frame(run, null));
  try {
    f(run);
  } finally {
    setFrame(undefined);
  }
};

// inheritFrame and callIn carry the frame over what V8 does not: callbacks of timers. What they throw is reported, as HTML's
// "report the exception" has it.
internal.inheritFrame = () => (framed ? frame() : undefined);

internal.callIn = (inherited, callback, self, args) => {
  if (framed) setFrame(inherited);
  try {
    ReflectApply(callback, self, args);
  } catch (error) {
    internal.reportException(error);
  }
  if (framed) setFrame(undefined);
};
