// dom/navigator.js is navigator, limited to members that reveal nothing about the machine, and scheduler.wait of
// other worker runtimes.

"use strict";

const { ObjectFreeze, PromiseReject, TypeError } = primordials;
const {
  TOKEN, defineInterface, illegalConstructor, illegalInvocation, isObject, newCapability, onAbort, requireArguments,
  signalState, toDictionary, toLong,
} = internal;

const languages = ObjectFreeze(["en-US"]);

class Navigator {
  #brand = true;
  constructor(token = undefined) {
    if (token !== TOKEN) throw illegalConstructor();
  }
  static #check(value) {
    if (!isObject(value) || !(#brand in value)) throw illegalInvocation("Navigator");
  }
  get userAgent() { Navigator.#check(this); return "Pinwheel"; }
  get language() { Navigator.#check(this); return "en-US"; }
  get languages() { Navigator.#check(this); return languages; }
  get hardwareConcurrency() { Navigator.#check(this); return 1; } // one line of a worker's code runs at a time
}
defineInterface(Navigator, "Navigator");
internal.navigator = new Navigator(TOKEN);

function wait(delay, signal) {
  if (signal === undefined) {
    const { promise, resolve } = newCapability();
    internal.startTimer(delay, () => { resolve(undefined); });
    return promise;
  }
  if (!internal.isAbortSignal(signal)) throw new TypeError("Scheduler.wait: the signal is not an AbortSignal");
  if (signalState(signal).aborted) throw signalState(signal).reason;
  const { promise, reject, resolve } = newCapability();
  const id = internal.startTimer(delay, () => {
    forget();
    resolve(undefined);
  });
  const forget = onAbort(signal, (reason) => {
    internal.clearTimer(id);
    reject(reason);
  });
  return promise;
}

class Scheduler {
  #brand = true;
  constructor(token = undefined) {
    if (token !== TOKEN) throw illegalConstructor();
  }
  wait(delay, options = undefined) {
    try {
      if (!isObject(this) || !(#brand in this)) throw illegalInvocation("Scheduler");
      requireArguments(arguments.length, 1, "Scheduler.wait");
      const ms = toLong(delay);
      return wait(ms < 0 ? 0 : ms, toDictionary(options, "Scheduler.wait: the options")?.signal);
    } catch (error) {
      return PromiseReject(error);
    }
  }
}
defineInterface(Scheduler, "Scheduler");
internal.scheduler = new Scheduler(TOKEN);
