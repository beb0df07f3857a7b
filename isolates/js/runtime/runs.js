// runtime/runs.js keeps one object per event and knows which event acts. In a context that runs one event at a time,
// the latest event acts. In a concurrent context (mode persistent), V8 passes a frame from every promise to its
// reactions. Frames also carry the values of AsyncLocalStorage (runtime/async_context.js). In a context that is not
// concurrent, frames are in use from the first such value on.

"use strict";

const {
  List, Map, MapPrototypeClear, MapPrototypeDelete, MapPrototypeForEach, MapPrototypeGet, MapPrototypeGetSize, MapPrototypeSet,
  ReflectApply, sealedProto,
} = primordials;
const { sendOps } = internal;
const { frame, send, setFrame } = host;

// Run is the state of one event. The run of a past event is over. Code that still holds it cannot send anything with
// it.
class Run {
  id;
  kind; // a bit of HANDLERS
  answered = false;
  over = false;
  responded = false; // a listener called respondWith
  waiting = 0; // the number of waitUntil promises that are not settled
  malformed = null; // why the parser rejected the payload
  request = null; // the request of a fetch event
  signal = null; // of the event of a task or schedule, null before somebody reads it
  cancelled = null; // why the event is cancelled
  credit = 0; // bytes of the body that the requester takes in chunks; 0 = the requester wants the whole body
  parts = null; // the stream of a request body in parts
  sender = null; // sends the body in chunks
  timeline = null; // the marks and measures, null before the first
  observers = null; // the PerformanceObservers, null before the first
  batch = null; // of a queue handler
  console = null; // the groups, counts and clocks, null before the first
  constructor(id, kind) {
    this.id = id;
    this.kind = kind;
  }
}
sealedProto(Run);

// Frame is what reactions inherit: the run they belong to, and the values that are set in it.
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
let framed = false; // whether frames are in use
let current = null; // the latest event, in a context that runs one event at a time
let background = null; // in a concurrent context, the run of code that acts for no event: it has id 0 and is never over
let told = null; // the run to which Go assigns commands, in this call of the entry
const live = new Map(); // id → Run, in a concurrent context

internal.isConcurrent = () => concurrent;

// runConcurrently makes the context concurrent. The runtime calls it before it loads the module.
internal.runConcurrently = () => {
  concurrent = framed = true;
  background = new Run(0, 0);
};

// enter is the first call in every call of the entry, and leave is the last. So no frame passes from one call to the
// next, or to another context of the isolate.
internal.enter = (inFrame) => {
  told = null;
  if (framed && !inFrame) setFrame(undefined);
};
internal.leave = () => { if (framed) setFrame(undefined); };

// useFrames starts the use of frames. It runs before the first value is set.
internal.useFrames = () => {
  if (framed) return;
  framed = true;
  setFrame(undefined); // clears the frame of another context of the isolate
};

// frameValues returns the values that are set in the calling code. withValues calls f with other values. setValues
// sets other values for the rest of this turn. None of them changes the run.
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

// acting returns the run that acts now. It returns null during the load of the module in a context that runs one
// event at a time.
internal.acting = () => {
  if (!concurrent) return current;
  const f = frame();
  return f === undefined ? background : f.run;
};

// background is the run of code that acts for no event, in a concurrent context.
internal.background = () => background;

internal.eventIsOver = () => {
  const run = internal.acting();
  return run !== null && run.over;
};

// speakFor makes Go assign the next commands to this run.
internal.speakFor = (run) => {
  if (!concurrent) return;
  const speaker = run === null || run.over ? background : run;
  if (told === speaker) return;
  told = speaker;
  send(sendOps.ACTING, speaker.id);
};

// begin makes the run of a new event. In a context that runs one event at a time, it forgets the state of the
// previous event.
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

// end marks a run as over. In a concurrent context it forgets the run's state at once. Otherwise the next begin does
// that.
internal.end = (run) => {
  if (run.over) return;
  run.over = true;
  if (!concurrent) return;
  MapPrototypeDelete(live, run.id);
  forget(run);
};

// runById returns the run with this id if the run is not over.
internal.runById = (id) => {
  if (concurrent) return MapPrototypeGet(live, id);
  return current !== null && current.id === id && !current.over ? current : undefined;
};

// endById ends the runs that Go has ended.
internal.endById = (ids) => {
  for (let i = 0; i < ids.length; i++) {
    const run = MapPrototypeGet(live, ids[i]);
    if (run !== undefined) internal.end(run);
  }
};

// forgetIn removes the entries of a run that is over from a map of id → {run}. Where events run one at a time, it
// removes all entries.
internal.forgetIn = (map, run) => {
  if (MapPrototypeGetSize(map) === 0) return; // because clear would allocate
  if (!concurrent) MapPrototypeClear(map);
  else {
    MapPrototypeForEach(map, (entry, id) => { if (entry.run === run) MapPrototypeDelete(map, id); });
  }
};

const forgetting = new List();

// onForget adds a function that removes what its file keeps of a run that is over.
internal.onForget = (f) => { forgetting[forgetting.length] = f; };

function forget(run) {
  for (let i = 0; i < forgetting.length; i++) forgetting[i](run);
}

let lastRequest = 0;

// nextRequestId returns the id of a request that Go answers later: a fetch, a call of a binding, a queue send.
internal.nextRequestId = () => ++lastRequest;

// startIn calls f for run.
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

let reportException; // of dom/uncaught.js

internal.reportBy = (f) => { reportException = f; };

// inheritFrame and callIn carry the frame where V8 does not: to callbacks of timers. They report what a callback
// throws, as HTML's "report the exception" requires.
internal.inheritFrame = () => (framed ? frame() : undefined);

internal.callIn = (inherited, callback, self, args) => {
  if (framed) setFrame(inherited);
  try {
    ReflectApply(callback, self, args);
  } catch (error) {
    reportException(error);
  }
  if (framed) setFrame(undefined);
};
