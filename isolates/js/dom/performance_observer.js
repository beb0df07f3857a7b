// dom/performance_observer.js is PerformanceObserver of Performance Timeline. An observer sees the entries of the
// event in which code called observe(). An observer that a module starts during its load sees the module's entries.

"use strict";

const { List, ObjectFreeze, TypeError, sealedProto } = primordials;
const {
  DOMException, TOKEN, appendArray, defineInterface, illegalConstructor, illegalInvocation, isObject, requireArguments, timelines,
  toCallback, toDOMString, toDictionary, toSequence,
} = internal;

const supported = ObjectFreeze(["mark", "measure"]);

// Registry has the observers of one event.
class Registry {
  run;
  frame;
  list = new List(); // of registrations
  queued = false; // whether a task or microtask will call their callbacks
  constructor(run) {
    this.run = run;
    this.frame = internal.inheritFrame();
  }
}
sealedProto(Registry);

class Registration {
  observer;
  types;
  buffer = new List();
  constructor(observer, types) {
    this.observer = observer;
    this.types = types;
  }
}
sealedProto(Registration);

class Observer {
  handle;
  callback;
  single = undefined; // the type if observe() was called with a type, and not with a list of types
  tellDropped = false;
  constructor(handle, callback) {
    this.handle = handle;
    this.callback = callback;
  }
}
sealedProto(Observer);

let ofModule = null; // the registry of code that acts for no event

function registry() {
  const run = internal.acting();
  return run === null || run.id === 0 ? ofModule : run.observers;
}

function makeRegistry() {
  const run = internal.acting();
  return run === null || run.id === 0 ? (ofModule ??= new Registry(null)) : (run.observers ??= new Registry(run));
}

function find(r, observer) {
  for (let i = 0; r !== null && i < r.list.length; i++) {
    if (r.list[i].observer === observer) return r.list[i];
  }
  return null;
}

function includes(list, item) {
  for (let i = 0; i < list.length; i++) {
    if (list[i] === item) return true;
  }
  return false;
}

// observeEntry is "queue a PerformanceEntry".
internal.observeEntry = (entry, type) => {
  const r = registry();
  if (r === null) return;
  for (let i = 0; i < r.list.length; i++) {
    const { buffer, types } = r.list[i];
    if (!includes(types, type)) continue;
    buffer[buffer.length] = entry;
    callSoon(r);
  }
};

// callSoon queues a task. During the load of a module there are only microtasks.
function callSoon(r) {
  if (r.queued) return;
  r.queued = true;
  if (r.run === null) internal.queueMicrotask(() => { callAll(r); });
  else internal.startTimerFor(r.run, r.frame, 0, () => { callAll(r); });
}

function callAll(r) {
  r.queued = false;
  const list = new List();
  for (let i = 0; i < r.list.length; i++) list[i] = r.list[i];
  for (let i = 0; i < list.length; i++) {
    const { observer } = list[i];
    const options = observer.tellDropped ? { droppedEntriesCount: timelines.dropped() } : {};
    const entries = list[i].buffer;
    if (entries.length === 0) continue;
    observer.tellDropped = false;
    list[i].buffer = new List();
    internal.callIn(r.frame, observer.callback, observer.handle,
      [new PerformanceObserverEntryList(TOKEN, entries), observer.handle, options]);
  }
}

let observerOf;

class PerformanceObserver {
  #observer;
  constructor(callback) {
    requireArguments(arguments.length, 1, "new PerformanceObserver");
    this.#observer = new Observer(this, toCallback(callback, "new PerformanceObserver: the callback"));
  }
  static {
    observerOf = (value) => {
      if (!isObject(value) || !(#observer in value)) throw illegalInvocation("PerformanceObserver");
      return value.#observer;
    };
  }
  static get supportedEntryTypes() { return supported; }
  observe(options = undefined) {
    const observer = observerOf(this);
    const { buffered, entryTypes, type } = readOptions(options);
    if (entryTypes === undefined && type === undefined) throw new TypeError("PerformanceObserver.observe: neither entryTypes nor type is given");
    if (entryTypes !== undefined && (type !== undefined || buffered !== undefined)) {
      throw new TypeError("PerformanceObserver.observe: entryTypes is given with another option");
    }
    const single = entryTypes === undefined;
    if (observer.single !== undefined && observer.single !== single) {
      throw new DOMException("PerformanceObserver.observe: was called with the other of entryTypes and type before", "InvalidModificationError");
    }
    observer.single = single;
    observer.tellDropped = true;
    if (single) observeType(observer, type, buffered === true);
    else observeTypes(observer, entryTypes);
  }
  disconnect() {
    const observer = observerOf(this);
    const r = registry();
    if (r === null) return;
    let kept = 0;
    for (let i = 0; i < r.list.length; i++) {
      if (r.list[i].observer !== observer) r.list[kept++] = r.list[i];
      else r.list[i].buffer = new List();
    }
    r.list.length = kept;
  }
  takeRecords() {
    const registration = find(registry(), observerOf(this));
    const out = [];
    if (registration === null) return out;
    const { buffer } = registration;
    registration.buffer = new List();
    for (let i = 0; i < buffer.length; i++) appendArray(out, buffer[i]);
    return out;
  }
}
defineInterface(PerformanceObserver, "PerformanceObserver");

function readOptions(value) {
  const init = toDictionary(value, "PerformanceObserver.observe: the options");
  let buffered = init?.buffered;
  if (buffered !== undefined) buffered = !!buffered;
  let entryTypes = init?.entryTypes;
  if (entryTypes !== undefined) entryTypes = toSequence(entryTypes, toDOMString, "PerformanceObserver.observe: entryTypes");
  let type = init?.type;
  if (type !== undefined) type = toDOMString(type);
  return { __proto__: null, buffered, entryTypes, type };
}

function observeTypes(observer, wanted) {
  const types = new List();
  for (let i = 0; i < wanted.length; i++) {
    if (includes(supported, wanted[i])) types[types.length] = wanted[i];
  }
  if (types.length > 0) register(observer).types = types;
}

function observeType(observer, type, buffered) {
  if (!includes(supported, type)) return;
  const registration = register(observer);
  if (!includes(registration.types, type)) registration.types[registration.types.length] = type;
  if (!buffered) return;
  timelines.collect(registration.buffer, type);
  callSoon(makeRegistry());
}

function register(observer) {
  const r = makeRegistry();
  const known = find(r, observer);
  if (known !== null) return known;
  return (r.list[r.list.length] = new Registration(observer, new List()));
}

class PerformanceObserverEntryList {
  #entries;
  constructor(token = undefined, entries) {
    if (token !== TOKEN) throw illegalConstructor();
    this.#entries = entries;
  }
  static #of(value) {
    if (!isObject(value) || !(#entries in value)) throw illegalInvocation("PerformanceObserverEntryList");
    return value.#entries;
  }
  getEntries() { return timelines.select(PerformanceObserverEntryList.#of(this), undefined, undefined); }
  getEntriesByType(type) {
    const entries = PerformanceObserverEntryList.#of(this);
    requireArguments(arguments.length, 1, "PerformanceObserverEntryList.getEntriesByType");
    return timelines.select(entries, undefined, toDOMString(type));
  }
  getEntriesByName(name, type = undefined) {
    const entries = PerformanceObserverEntryList.#of(this);
    requireArguments(arguments.length, 1, "PerformanceObserverEntryList.getEntriesByName");
    const wanted = toDOMString(name);
    return timelines.select(entries, wanted, type === undefined ? undefined : toDOMString(type));
  }
}
defineInterface(PerformanceObserverEntryList, "PerformanceObserverEntryList");
