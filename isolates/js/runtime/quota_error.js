// runtime/quota_error.js is QuotaExceededError of Web IDL: a DOMException that can have the allowed amount and the
// requested amount.

"use strict";

const { NumberIsFinite, RangeError, TypeError } = primordials;
const { DOMException, defineInterface, illegalInvocation, isObject, toDictionary } = internal;

// toDouble converts a member of the options. It returns null for a missing member.
function toDouble(value, what) {
  if (value === undefined) return null;
  const number = +value;
  if (!NumberIsFinite(number)) throw new TypeError(`new QuotaExceededError: ${what} is not a finite number`);
  return number;
}

class QuotaExceededError extends DOMException {
  #quota;
  #requested;
  constructor(message = "", options = undefined) {
    super(message, "QuotaExceededError");
    const given = toDictionary(options, "new QuotaExceededError: the options");
    this.#quota = toDouble(given?.quota, "quota");
    this.#requested = toDouble(given?.requested, "requested");
    if (this.#quota < 0 || this.#requested < 0) throw new RangeError("new QuotaExceededError: quota and requested cannot be negative");
    if (this.#quota !== null && this.#requested !== null && this.#requested < this.#quota) {
      throw new RangeError("new QuotaExceededError: requested is less than quota");
    }
  }
  get quota() {
    if (!isObject(this) || !(#quota in this)) throw illegalInvocation("QuotaExceededError");
    return this.#quota;
  }
  get requested() {
    if (!isObject(this) || !(#quota in this)) throw illegalInvocation("QuotaExceededError");
    return this.#requested;
  }
  static {
    // copyQuotaError is for structuredClone. It returns undefined if the value is not a QuotaExceededError.
    internal.copyQuotaError = (value, message) => {
      if (!(#quota in value)) return undefined;
      const copy = new QuotaExceededError(message);
      copy.#quota = value.#quota;
      copy.#requested = value.#requested;
      return copy;
    };
  }
}
defineInterface(QuotaExceededError, "QuotaExceededError");
internal.QuotaExceededError = QuotaExceededError;
