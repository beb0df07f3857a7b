// streams/strategies.js is CountQueuingStrategy and ByteLengthQueuingStrategy. It also reads strategies of the
// handler code.

"use strict";

const { NumberIsNaN, RangeError, ReflectApply, TypeError } = primordials;
const { defineInterface, illegalInvocation, isObject, requireArguments, toCallback, toDictionary } = internal;

function highWaterMarkOf(init, what) {
  const dictionary = toDictionary(init, `${what}: the init`);
  const mark = dictionary === undefined ? undefined : dictionary.highWaterMark;
  if (mark === undefined) throw new TypeError(`${what}: highWaterMark is missing`);
  return +mark;
}

const byteLengthSize = { size(chunk) { return chunk.byteLength; } }.size;
const countSize = { size() { return 1; } }.size;

class ByteLengthQueuingStrategy {
  #highWaterMark;
  constructor(init) {
    requireArguments(arguments.length, 1, "new ByteLengthQueuingStrategy");
    this.#highWaterMark = highWaterMarkOf(init, "new ByteLengthQueuingStrategy");
  }
  get highWaterMark() {
    if (!isObject(this) || !(#highWaterMark in this)) throw illegalInvocation("ByteLengthQueuingStrategy");
    return this.#highWaterMark;
  }
  get size() {
    if (!isObject(this) || !(#highWaterMark in this)) throw illegalInvocation("ByteLengthQueuingStrategy");
    return byteLengthSize;
  }
}
defineInterface(ByteLengthQueuingStrategy, "ByteLengthQueuingStrategy");

class CountQueuingStrategy {
  #highWaterMark;
  constructor(init) {
    requireArguments(arguments.length, 1, "new CountQueuingStrategy");
    this.#highWaterMark = highWaterMarkOf(init, "new CountQueuingStrategy");
  }
  get highWaterMark() {
    if (!isObject(this) || !(#highWaterMark in this)) throw illegalInvocation("CountQueuingStrategy");
    return this.#highWaterMark;
  }
  get size() {
    if (!isObject(this) || !(#highWaterMark in this)) throw illegalInvocation("CountQueuingStrategy");
    return countSize;
  }
}
defineInterface(CountQueuingStrategy, "CountQueuingStrategy");

// readStrategy converts a QueuingStrategy. The caller checks sizes and marks.
function readStrategy(value, what) {
  const dictionary = toDictionary(value, `${what}: the strategy`);
  if (dictionary === undefined) return { __proto__: null, highWaterMark: undefined, size: undefined };
  let { highWaterMark } = dictionary;
  if (highWaterMark !== undefined) highWaterMark = +highWaterMark;
  const { size } = dictionary;
  if (size !== undefined) toCallback(size, `${what}: size`);
  return { __proto__: null, highWaterMark, size };
}

function highWaterMark(strategy, fallback) {
  if (strategy.highWaterMark === undefined) return fallback;
  if (NumberIsNaN(strategy.highWaterMark) || strategy.highWaterMark < 0) {
    throw new RangeError("highWaterMark is below zero or not a number");
  }
  return strategy.highWaterMark;
}

function sizeAlgorithm(strategy) {
  const { size } = strategy;
  return size === undefined ? undefined : (chunk) => +ReflectApply(size, undefined, [chunk]);
}

primordials.ObjectAssign(internal.streams, { readStrategy, highWaterMark, sizeAlgorithm });
