// dom/abort.js is AbortController and AbortSignal of the DOM standard.

"use strict";

const { List, TypeError, sealedProto } = primordials;
const {
  DOMException, Event, EventTarget, HandlerSlot, TOKEN, defineInterface, fire, illegalConstructor, illegalInvocation,
  requireArguments, setHandler, toInteger, toSequence,
} = internal;

class SignalState {
  aborted = false;
  reason = undefined;
  algorithms = new List();
  dependent = false;
  sources = new List(); // signals that this signal depends on
  dependents = new List(); // signals that depend on this one
  onabort = new HandlerSlot();
}
sealedProto(SignalState);

let signalState;

class AbortSignal extends EventTarget {
  #state = new SignalState();
  constructor(token = undefined) {
    if (token !== TOKEN) throw illegalConstructor();
    super();
  }
  static {
    signalState = (value) => {
      if (typeof value !== "object" || value === null || !(#state in value)) throw illegalInvocation("AbortSignal");
      return value.#state;
    };
    internal.isAbortSignal = (value) => typeof value === "object" && value !== null && #state in value;
  }
  static abort(reason = undefined) {
    const signal = new AbortSignal(TOKEN);
    const s = signalState(signal);
    s.aborted = true;
    s.reason = abortReason(reason);
    return signal;
  }
  static timeout(milliseconds) {
    requireArguments(arguments.length, 1, "AbortSignal.timeout");
    const delay = toInteger(milliseconds, 64, false, "enforce", "AbortSignal.timeout: the argument");
    const signal = new AbortSignal(TOKEN);
    const at = internal.stackHere();
    internal.startTimer(delay, () => {
      signalAbort(signal, internal.withStack(at, new DOMException("The operation timed out", "TimeoutError")));
    });
    return signal;
  }
  static any(signals) {
    requireArguments(arguments.length, 1, "AbortSignal.any");
    const list = toSequence(signals, (value) => {
      if (!internal.isAbortSignal(value)) throw new TypeError("AbortSignal.any: an item is not an AbortSignal");
      return value;
    }, "AbortSignal.any: the argument");
    return dependentSignal(list);
  }
  get aborted() { return signalState(this).aborted; }
  get reason() { return signalState(this).reason; }
  throwIfAborted() {
    const s = signalState(this);
    if (s.aborted) throw s.reason;
  }
  get onabort() { return signalState(this).onabort.value; }
  set onabort(value) { setHandler(this, signalState(this).onabort, "abort", value); }
}
defineInterface(AbortSignal, "AbortSignal");

function abortReason(reason) {
  return reason === undefined ? new DOMException("This operation was aborted", "AbortError") : reason;
}

// dependentSignal is "create a dependent abort signal". Sources hold their dependents until the event ends. That time
// is short, so weak references are not necessary.
function dependentSignal(list) {
  const result = new AbortSignal(TOKEN);
  const s = signalState(result);
  for (let i = 0; i < list.length; i++) {
    const source = signalState(list[i]);
    if (source.aborted) {
      s.aborted = true;
      s.reason = source.reason;
      return result;
    }
  }
  s.dependent = true;
  for (let i = 0; i < list.length; i++) {
    const source = signalState(list[i]);
    if (!source.dependent) {
      link(list[i], result);
      continue;
    }
    for (let j = 0; j < source.sources.length; j++) link(source.sources[j], result);
  }
  return result;
}

function link(source, dependent) {
  const s = signalState(dependent);
  for (let i = 0; i < s.sources.length; i++) {
    if (s.sources[i] === source) return;
  }
  s.sources[s.sources.length] = source;
  const { dependents } = signalState(source);
  dependents[dependents.length] = dependent;
}

// signalAbort is "signal abort". It first marks the signal and its dependents, then runs the steps of each.
function signalAbort(signal, reason) {
  const s = signalState(signal);
  if (s.aborted) return;
  s.aborted = true;
  s.reason = abortReason(reason);
  const woken = new List();
  for (let i = 0; i < s.dependents.length; i++) {
    const d = signalState(s.dependents[i]);
    if (d.aborted) continue;
    d.aborted = true;
    d.reason = s.reason;
    woken[woken.length] = s.dependents[i];
  }
  runAbortSteps(signal);
  for (let i = 0; i < woken.length; i++) runAbortSteps(woken[i]);
}

function runAbortSteps(signal) {
  const s = signalState(signal);
  const { algorithms } = s;
  s.algorithms = new List();
  for (let i = 0; i < algorithms.length; i++) {
    const algorithm = algorithms[i];
    if (algorithm !== null) algorithm(s.reason);
  }
  fire(signal, new Event("abort"));
}

// onAbort adds a step to run on abort, before the event. It returns a function that removes the step.
internal.onAbort = (signal, algorithm) => {
  const s = signalState(signal);
  if (s.aborted) return internal.noop;
  s.algorithms[s.algorithms.length] = algorithm;
  return () => {
    const { algorithms } = s;
    for (let i = 0; i < algorithms.length; i++) {
      if (algorithms[i] !== algorithm) continue;
      for (let j = i; j + 1 < algorithms.length; j++) algorithms[j] = algorithms[j + 1];
      algorithms.length--;
      return;
    }
  };
};

class AbortController {
  #signal = new AbortSignal(TOKEN);
  get signal() {
    if (!(#signal in this)) throw illegalInvocation("AbortController");
    return this.#signal;
  }
  abort(reason = undefined) {
    if (!(#signal in this)) throw illegalInvocation("AbortController");
    signalAbort(this.#signal, reason);
  }
}
defineInterface(AbortController, "AbortController");

internal.newSignal = () => new AbortSignal(TOKEN);
primordials.ObjectAssign(internal, { AbortController, AbortSignal, dependentSignal, signalAbort, signalState });
