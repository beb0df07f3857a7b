// dom/performance.js is High Resolution Time and User Timing: marks and measures. The host's clock is already coarse,
// and the code offers nothing finer. Each event has a separate timeline. Code of an event also sees the entries of
// the module.

"use strict";

const { List, NumberIsFinite, TypeError, sealedProto } = primordials;
const {
  DOMException, EventTarget, TOKEN, appendArray, defineInterface, illegalConstructor, illegalInvocation, isObject,
  requireArguments, toDOMString, toDictionary,
} = internal;
const { now } = host;

const MAX_ENTRIES = 10000; // of one timeline; more entries are not kept

// ---- entries ----

// Parts has the data of an entry.
class Parts {
  name;
  type;
  startTime;
  duration;
  constructor(name, type, startTime, duration) {
    this.name = name;
    this.type = type;
    this.startTime = startTime;
    this.duration = duration;
  }
}
sealedProto(Parts);

let making = null; // the parts of the entry under construction: they do not pass through super()
let partsOf;

class PerformanceEntry {
  #parts;
  constructor() {
    if (making === null) throw illegalConstructor();
    this.#parts = making;
    making = null;
  }
  static {
    partsOf = (value) => {
      if (!isObject(value) || !(#parts in value)) throw illegalInvocation("PerformanceEntry");
      return value.#parts;
    };
    internal.isPerformanceEntry = (value) => isObject(value) && #parts in value;
  }
  get name() { return partsOf(this).name; }
  get entryType() { return partsOf(this).type; }
  get startTime() { return partsOf(this).startTime; }
  get duration() { return partsOf(this).duration; }
  toJSON() { return entryJSON(this); }
}
defineInterface(PerformanceEntry, "PerformanceEntry");

// entryJSON returns the values of the attributes of the interface and of the interfaces that inherit from it, for
// toJSON.
function entryJSON(entry) {
  const { duration, name, startTime, type } = partsOf(entry);
  const out = { name, entryType: type, startTime, duration };
  const detail = detailOf(entry);
  if (detail !== undefined) out.detail = detail;
  return out;
}

function toTime(value, what) {
  const time = +value;
  if (!NumberIsFinite(time)) throw new TypeError(`${what} is not a finite number`);
  return time;
}

function copyDetail(detail) {
  return detail === undefined || detail === null ? null : internal.structuredClone(detail);
}

let markDetail;
let measureDetail;
let newMeasure = null; // the data of the measure under construction

class PerformanceMark extends PerformanceEntry {
  #detail;
  constructor(markName, markOptions = undefined) {
    requireArguments(arguments.length, 1, "new PerformanceMark");
    const name = toDOMString(markName);
    const options = toDictionary(markOptions, "new PerformanceMark: the options");
    const detail = options?.detail;
    let start = options?.startTime;
    if (start !== undefined) {
      start = toTime(start, "new PerformanceMark: startTime");
      if (start < 0) throw new TypeError("new PerformanceMark: startTime is negative");
    }
    const copy = copyDetail(detail);
    making = new Parts(name, "mark", start ?? now(), 0);
    super();
    making = null;
    this.#detail = copy;
  }
  static {
    markDetail = (value) => (#detail in value ? value.#detail : undefined);
  }
  get detail() {
    if (!isObject(this) || !(#detail in this)) throw illegalInvocation("PerformanceMark");
    return this.#detail;
  }
}
defineInterface(PerformanceMark, "PerformanceMark");

class PerformanceMeasure extends PerformanceEntry {
  #detail;
  constructor() {
    const own = newMeasure;
    newMeasure = null;
    if (own === null) throw illegalConstructor();
    making = own.parts;
    super();
    making = null;
    this.#detail = own.detail;
  }
  static {
    measureDetail = (value) => (#detail in value ? value.#detail : undefined);
  }
  get detail() {
    if (!isObject(this) || !(#detail in this)) throw illegalInvocation("PerformanceMeasure");
    return this.#detail;
  }
}
defineInterface(PerformanceMeasure, "PerformanceMeasure");

function detailOf(entry) {
  const detail = markDetail(entry);
  return detail === undefined ? measureDetail(entry) : detail;
}

// ---- timelines ----

// shared is the timeline of code that acts for no event: the module during its load.
const shared = new List();

function timeline() {
  const run = internal.acting();
  return run === null || run.id === 0 ? shared : (run.timeline ??= new List());
}

// keep adds an entry to the timeline. It ignores other values: handler code can change the parent of a class, and
// then the constructor can make an object that is not an entry.
function keep(entry) {
  if (!internal.isPerformanceEntry(entry)) return entry;
  internal.observeEntry(entry, partsOf(entry).type);
  const list = timeline();
  if (list.length < MAX_ENTRIES) list[list.length] = entry;
  else list.dropped = dropped(list) + 1;
  return entry;
}

// dropped returns the number of entries that the timeline did not keep.
function dropped(list) {
  return list.dropped ?? 0;
}

// select returns the entries of that name and type (undefined: any), in the order of their start.
function select(name, type) {
  const found = new List();
  collect(found, shared, name, type);
  const own = timeline();
  if (own !== shared) collect(found, own, name, type);
  return inOrder(found);
}

// inOrder returns the sorted entries as an array for handler code.
function inOrder(list) {
  const out = [];
  const sorted = sortByStart(list);
  for (let i = 0; i < sorted.length; i++) appendArray(out, sorted[i]);
  return out;
}

// timelines is for dom/performance_observer.js. It has the entries of the current timelines or of a list, and the
// number of entries that were not kept.
internal.timelines = {
  __proto__: null,
  collect: (found, type) => {
    collect(found, shared, undefined, type);
    if (timeline() !== shared) collect(found, timeline(), undefined, type);
  },
  dropped: () => dropped(shared) + (timeline() === shared ? 0 : dropped(timeline())),
  select: (list, name, type) => {
    const found = new List();
    collect(found, list, name, type);
    return inOrder(found);
  },
};

function collect(found, list, name, type) {
  for (let i = 0; i < list.length; i++) {
    const parts = partsOf(list[i]);
    if ((name === undefined || parts.name === name) && (type === undefined || parts.type === type)) found[found.length] = list[i];
  }
}

// sortByStart is a merge sort, so it is stable.
function sortByStart(list) {
  if (list.length < 2) return list;
  const left = new List();
  const right = new List();
  const middle = list.length >> 1;
  for (let i = 0; i < list.length; i++) {
    if (i < middle) left[i] = list[i];
    else right[i - middle] = list[i];
  }
  const a = sortByStart(left);
  const b = sortByStart(right);
  let i = 0;
  let j = 0;
  for (let n = 0; n < list.length; n++) {
    const first = j >= b.length || (i < a.length && partsOf(a[i]).startTime <= partsOf(b[j]).startTime);
    list[n] = first ? a[i++] : b[j++];
  }
  return list;
}

function clear(list, name, type) {
  let kept = 0;
  for (let i = 0; i < list.length; i++) {
    const parts = partsOf(list[i]);
    if (parts.type !== type || (name !== undefined && parts.name !== name)) list[kept++] = list[i];
  }
  list.length = kept;
}

function clearAll(name, type) {
  const wanted = name === undefined ? undefined : toDOMString(name);
  clear(shared, wanted, type);
  clear(timeline(), wanted, type);
}

// ---- measures ----

// toMark converts (DOMString or DOMHighResTimeStamp).
function toMark(value, what) {
  return typeof value === "number" ? toTime(value, what) : toDOMString(value);
}

// timeOf is "convert a mark to a timestamp". It takes the newest mark of that name in the event, or otherwise in the
// module.
function timeOf(mark) {
  if (typeof mark === "number") {
    if (mark < 0) throw new TypeError("Performance.measure: a time is negative");
    return mark;
  }
  for (let list = timeline(); ; list = shared) {
    for (let i = list.length - 1; i >= 0; i--) {
      const parts = partsOf(list[i]);
      if (parts.type === "mark" && parts.name === mark) return parts.startTime;
    }
    if (list === shared) throw new DOMException(`there is no mark ${internal.inspectBrief(mark)}`, "SyntaxError");
  }
}

class MeasureOptions {
  detail;
  duration;
  end;
  start;
}
sealedProto(MeasureOptions);

function toMeasureOptions(value) {
  const options = new MeasureOptions();
  if (value === undefined || value === null) return options;
  options.detail = value.detail;
  const duration = value.duration;
  if (duration !== undefined) options.duration = toTime(duration, "Performance.measure: duration");
  const end = value.end;
  if (end !== undefined) options.end = toMark(end, "Performance.measure: end");
  const start = value.start;
  if (start !== undefined) options.start = toMark(start, "Performance.measure: start");
  return options;
}

function checkMeasure({ detail, duration, end, start }, endMark) {
  if (detail === undefined && duration === undefined && end === undefined && start === undefined) return;
  if (endMark !== undefined) throw new TypeError("Performance.measure: both options and an end mark are given");
  if (start === undefined && end === undefined) throw new TypeError("Performance.measure: the options have neither start nor end");
  if (start !== undefined && end !== undefined && duration !== undefined) {
    throw new TypeError("Performance.measure: the options have all of start, end and duration");
  }
}

function measure(name, from, endMark) {
  const options = typeof from === "string" ? new MeasureOptions() : from;
  checkMeasure(options, endMark);
  const { detail, duration, end, start } = options;
  let endTime;
  if (endMark !== undefined) endTime = timeOf(endMark);
  else if (end !== undefined) endTime = timeOf(end);
  else if (start !== undefined && duration !== undefined) endTime = timeOf(start) + timeOf(duration);
  else endTime = now();
  let startTime = 0;
  if (start !== undefined) startTime = timeOf(start);
  else if (duration !== undefined && end !== undefined) startTime = timeOf(end) - timeOf(duration);
  else if (typeof from === "string") startTime = timeOf(from);
  const copy = copyDetail(detail);
  newMeasure = { __proto__: null, parts: new Parts(name, "measure", startTime, endTime - startTime), detail: copy };
  return keep(new PerformanceMeasure());
}

// ---- the interface ----

class Performance extends EventTarget {
  #brand;
  constructor(token = undefined) {
    if (token !== TOKEN) throw illegalConstructor();
    super();
    this.#brand = true;
  }
  static #check(value) {
    if (!isObject(value) || !(#brand in value)) throw illegalInvocation("Performance");
  }
  get timeOrigin() { Performance.#check(this); return host.timeOrigin; }
  now() { Performance.#check(this); return now(); }
  toJSON() { Performance.#check(this); return { timeOrigin: host.timeOrigin }; }
  getEntries() { Performance.#check(this); return select(undefined, undefined); }
  getEntriesByType(type) {
    Performance.#check(this);
    requireArguments(arguments.length, 1, "Performance.getEntriesByType");
    return select(undefined, toDOMString(type));
  }
  getEntriesByName(name, type = undefined) {
    Performance.#check(this);
    requireArguments(arguments.length, 1, "Performance.getEntriesByName");
    const wanted = toDOMString(name);
    return select(wanted, type === undefined ? undefined : toDOMString(type));
  }
  mark(markName, markOptions = undefined) {
    Performance.#check(this);
    requireArguments(arguments.length, 1, "Performance.mark");
    return keep(new PerformanceMark(markName, markOptions));
  }
  clearMarks(markName = undefined) { Performance.#check(this); clearAll(markName, "mark"); }
  measure(measureName, startOrMeasureOptions = undefined, endMark = undefined) {
    Performance.#check(this);
    requireArguments(arguments.length, 1, "Performance.measure");
    const name = toDOMString(measureName);
    const from = startOrMeasureOptions === undefined || startOrMeasureOptions === null || isObject(startOrMeasureOptions)
      ? toMeasureOptions(startOrMeasureOptions) : toDOMString(startOrMeasureOptions);
    return measure(name, from, endMark === undefined ? undefined : toDOMString(endMark));
  }
  clearMeasures(measureName = undefined) { Performance.#check(this); clearAll(measureName, "measure"); }
}
defineInterface(Performance, "Performance");
internal.performance = new Performance(TOKEN);
