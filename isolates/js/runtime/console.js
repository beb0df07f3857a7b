// runtime/console.js is the console namespace. Every line becomes one LOG. The console reads the logged values but
// never runs their code.

"use strict";

const {
  ErrorCaptureStackTrace, Map, MapPrototypeDelete, MapPrototypeGet, MapPrototypeSet, MathMin, MathTrunc, NumberIsNaN,
  NumberParseFloat, NumberPrototypeToFixed, ObjectCreate, ObjectDefineProperty, ObjectPrototype,
  StringPrototypeIncludes, StringPrototypeRepeat, StringPrototypeSlice, SymbolPrototypeToString, sealedProto, split,
} = primordials;
const { defineGlobal, sendOps, toDOMString } = internal;
const { send } = host;

const DEBUG = 0;
const INFO = 1;
const WARN = 2;
const ERROR = 3;
const MAX_TEXT = 8192;
const MAX_GROUPS = 32;
const MAX_LABELS = 1000;
const MAX_DEPTH = 50;

// State is what the console remembers for one event. It ends with the event. Code that acts for no event has its own
// State.
class State {
  depth = 0; // the number of open groups
  counts = new Map();
  clocks = new Map();
}
sealedProto(State);
const ground = new State();

function state() {
  const run = internal.acting();
  return run === null || run.id === 0 ? ground : (run.console ??= new State());
}

function emit(level, text) {
  const run = internal.acting();
  const depth = run === null || run.id === 0 ? ground.depth : run.console === null ? 0 : run.console.depth;
  if (depth > 0) text = indent(text, depth);
  if (text.length > MAX_TEXT) text = StringPrototypeSlice(text, 0, MAX_TEXT - 1) + "…";
  internal.speakFor(run);
  send(sendOps.LOG, level, text);
}

internal.logLine = emit;

function indent(text, depth) {
  const pad = StringPrototypeRepeat("  ", depth);
  if (!StringPrototypeIncludes(text, "\n")) return pad + text;
  const lines = split(text, "\n");
  let out = "";
  for (let i = 0; i < lines.length; i++) out += (i === 0 ? "" : "\n") + pad + lines[i];
  return out;
}

// format is the Console standard's Formatter. It replaces %s %d %i %f %j %o %O %c in a first string and appends the
// other arguments.
function format(args) {
  let out = "";
  let at = 0;
  if (args.length > 1 && typeof args[0] === "string" && StringPrototypeIncludes(args[0], "%")) {
    const state = { __proto__: null, next: 1 };
    out = substitute(args[0], args, state);
    at = state.next;
  }
  for (let i = at; i < args.length && out.length <= MAX_TEXT; i++) {
    if (i > 0) out += " ";
    out += typeof args[i] === "string" ? args[i] : internal.inspect(args[i]);
  }
  return out;
}

function substitute(template, args, state) {
  let out = "";
  let plain = 0;
  for (let i = 0; i + 1 < template.length; i++) {
    if (template[i] !== "%") continue;
    const kind = template[i + 1];
    if (kind === "%") {
      out += StringPrototypeSlice(template, plain, i) + "%";
      plain = i + 2;
      i++;
      continue;
    }
    if (!StringPrototypeIncludes("sdifjoOc", kind) || state.next >= args.length) continue;
    out += StringPrototypeSlice(template, plain, i) + convert(kind, args[state.next++]);
    plain = i + 2;
    i++;
  }
  return out + StringPrototypeSlice(template, plain);
}

function convert(kind, value) {
  switch (kind) {
    case "s": return typeof value === "string" ? value : internal.inspect(value, 0);
    case "c": return "";
    case "d": return typeof value === "bigint" ? `${value}n` : numberText(value);
    case "i": return typeof value === "bigint" ? `${value}n` : integerText(value);
    case "f": return typeof value === "symbol" || internal.isObject(value) ? "NaN" : `${NumberParseFloat(`${value}`)}`;
    case "o": return internal.inspect(value, 4);
    default: return internal.inspect(value);
  }
}

function numberText(value) {
  return typeof value === "symbol" || internal.isObject(value) ? "NaN" : `${+value}`;
}

function integerText(value) {
  if (typeof value === "symbol" || internal.isObject(value)) return "NaN";
  const n = NumberParseFloat(`${value}`);
  return NumberIsNaN(n) ? "NaN" : `${MathTrunc(n)}`;
}

// depthOf reads the depth from the options of console.dir, if it is a number, or null for all levels. It runs no
// getter.
function depthOf(options) {
  const depth = internal.isObject(options) ? internal.dataProperty(options, "depth") : undefined;
  return depth === null ? MAX_DEPTH : typeof depth === "number" && depth >= 0 ? MathMin(depth, MAX_DEPTH) : undefined;
}

function label(value) {
  if (value === undefined) return "default";
  return typeof value === "symbol" ? SymbolPrototypeToString(value) : toDOMString(value);
}

function elapsed(since) {
  const ms = host.now() - since;
  return ms >= 1000 ? `${NumberPrototypeToFixed(ms / 1000, 3)}s` : `${NumberPrototypeToFixed(ms, 1)}ms`;
}

function traceText(args) {
  const holder = { __proto__: null };
  ErrorCaptureStackTrace(holder, methods.trace);
  const stack = internal.cleanStack(internal.rawStack(holder));
  let at = 0;
  while (at < stack.length && stack[at] !== "\n") at++;
  const head = args.length === 0 ? "Trace" : `Trace: ${format(args)}`;
  return head + StringPrototypeSlice(stack, at);
}

function openGroup(data) {
  if (data.length > 0) emit(INFO, format(data));
  const s = state();
  if (s.depth < MAX_GROUPS) s.depth++;
}

const methods = {
  assert(condition = false, ...data) {
    if (condition) return;
    if (data.length === 0) emit(ERROR, "Assertion failed");
    else if (typeof data[0] === "string") {
      data[0] = `Assertion failed: ${data[0]}`;
      emit(ERROR, format(data));
    } else emit(ERROR, `Assertion failed: ${format(data)}`);
  },
  clear() { state().depth = 0; },
  debug(...data) { emit(DEBUG, format(data)); },
  error(...data) { emit(ERROR, format(data)); },
  info(...data) { emit(INFO, format(data)); },
  log(...data) { emit(INFO, format(data)); },
  table(tabularData = undefined, properties = undefined) {
    const text = internal.inspectTable(tabularData, properties);
    emit(INFO, text ?? format([tabularData]));
  },
  trace(...data) { emit(DEBUG, traceText(data)); },
  warn(...data) { emit(WARN, format(data)); },
  dir(item = undefined, options = undefined) { emit(INFO, internal.inspect(item, depthOf(options))); },
  dirxml(...data) { emit(INFO, format(data)); },
  count(name = undefined) {
    const key = label(name);
    const { counts } = state();
    const n = (MapPrototypeGet(counts, key) ?? 0) + 1;
    if (n === 1 && primordials.MapPrototypeGetSize(counts) >= MAX_LABELS) return;
    MapPrototypeSet(counts, key, n);
    emit(INFO, `${key}: ${n}`);
  },
  countReset(name = undefined) {
    const key = label(name);
    if (!MapPrototypeDelete(state().counts, key)) emit(WARN, `Count for '${key}' does not exist`);
  },
  group(...data) {
    openGroup(data);
  },
  groupCollapsed(...data) {
    openGroup(data);
  },
  groupEnd() {
    const s = state();
    if (s.depth > 0) s.depth--;
  },
  time(name = undefined) {
    const key = label(name);
    const { clocks } = state();
    if (MapPrototypeGet(clocks, key) !== undefined) emit(WARN, `Timer '${key}' already exists`);
    else if (primordials.MapPrototypeGetSize(clocks) < MAX_LABELS) MapPrototypeSet(clocks, key, host.now());
  },
  timeLog(name = undefined, ...data) {
    const key = label(name);
    const since = MapPrototypeGet(state().clocks, key);
    if (since === undefined) emit(WARN, `Timer '${key}' does not exist`);
    else emit(INFO, `${key}: ${elapsed(since)}${data.length > 0 ? " " + format(data) : ""}`);
  },
  timeEnd(name = undefined) {
    const key = label(name);
    const { clocks } = state();
    const since = MapPrototypeGet(clocks, key);
    if (since === undefined) emit(WARN, `Timer '${key}' does not exist`);
    else emit(INFO, `${key}: ${elapsed(since)}`);
    MapPrototypeDelete(clocks, key);
  },
};

// The prototype of a namespace object is a separate empty object.
const console = ObjectCreate(ObjectCreate(ObjectPrototype));
const names = primordials.ReflectOwnKeys(methods);
for (let i = 0; i < names.length; i++) {
  ObjectDefineProperty(console, names[i],
    { __proto__: null, value: methods[names[i]], writable: true, enumerable: true, configurable: true });
}
internal.defineTag(console, "console");
defineGlobal("console", console);
