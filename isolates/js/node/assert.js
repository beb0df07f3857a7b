// node/assert.js is node:assert.

"use strict";

const { Error, ObjectIs, ObjectKeys, ReflectApply, RegExpPrototypeExec, TypeError } = primordials;
internal.node.builtin("util");
const { builtin, checks, coded, deepEqual, hide, put, types, wrongType, wrongValue } = internal.node;

const show = (value) => builtin("util").inspect(value);

const said = {
  __proto__: null,
  deepStrictEqual: "Expected values to be strictly deep-equal:", strictEqual: "Expected values to be strictly equal:",
  deepEqual: "Expected values to be loosely deep-equal:", notDeepStrictEqual: 'Expected "actual" not to be strictly deep-equal to:',
  notStrictEqual: 'Expected "actual" to be strictly unequal to:', notDeepEqual: 'Expected "actual" not to be loosely deep-equal to:',
};

class AssertionError extends Error {
  constructor(options) {
    checks.object(options, "options");
    const { actual, expected, message, operator, stackStartFn } = options;
    const title = said[operator];
    super(message !== undefined ? `${message}` : title === undefined ? `${show(actual)} ${operator} ${show(expected)}`
      : `${title}\n\n${show(actual)}${operator[0] === "n" ? "" : `\n\nshould ${operator === "deepEqual" ? "loosely deep-equal" : "equal"}\n\n${show(expected)}`}`);
    put(this, { generatedMessage: message === undefined, code: "ERR_ASSERTION", actual, expected, operator });
    hide(this, "name", "AssertionError");
    if (typeof stackStartFn === "function") primordials.ErrorCaptureStackTrace(this, stackStartFn);
  }
  toString() { return `${this.name} [${this.code}]: ${this.message}`; }
}

// refuse throws what an assertion that does not hold throws: the error that was given, or an AssertionError.
function refuse(actual, expected, message, operator, stackStartFn) {
  if (internal.isError(message)) throw message;
  throw new AssertionError({ actual, expected, message, operator, stackStartFn });
}

function needTwo(n) {
  if (n < 2) throw coded(TypeError, "ERR_MISSING_ARGS", 'The "actual" and "expected" arguments must be specified');
}

function ok(...args) {
  if (args[0]) return;
  let [value, message] = args;
  let generated = false;
  if (args.length === 0) {
    generated = true;
    message = "No value argument passed to `assert.ok()`";
  } else if (message === undefined || message === null) {
    generated = true;
    message = "The expression evaluated to a falsy value";
  } else if (internal.isError(message)) throw message;
  const error = new AssertionError({ actual: value, expected: true, message, operator: "==", stackStartFn: ok });
  error.generatedMessage = generated;
  throw error;
}

// matches tells whether an error is what an assertion expects. It throws if a comparison fails that says more.
function matches(error, expected, message, fn) {
  if (typeof expected !== "function") {
    if (types.isRegExp(expected)) {
      if (RegExpPrototypeExec(expected, `${error}`) !== null) return;
      refuse(error, expected, message ?? `The input did not match the regular expression ${show(expected)}. Input:\n\n${show(`${error}`)}\n`, fn.name, fn);
    }
    if (error === null || typeof error !== "object") refuse(error, expected, message, "deepStrictEqual", fn);
    const keys = ObjectKeys(expected);
    if (internal.isError(expected)) keys.push("name", "message");
    else if (keys.length === 0) throw wrongValue("error", expected, "may not be an empty object");
    for (let i = 0; i < keys.length; i++) {
      const wanted = expected[keys[i]];
      const has = error[keys[i]];
      if (typeof has === "string" && types.isRegExp(wanted) && RegExpPrototypeExec(wanted, has) !== null) continue;
      if (!(keys[i] in error) || !deepEqual(has, wanted, true)) refuse(error, expected, message, "throws", fn);
    }
    return;
  }
  if (expected.prototype !== undefined && error instanceof expected) return;
  if (primordials.ObjectPrototype.isPrototypeOf.call(Error, expected)) {
    refuse(error, expected, message ?? `The error is expected to be an instance of "${expected.name}". Received ${show(error)}`, fn.name, fn);
  }
  const result = ReflectApply(expected, {}, [error]);
  if (result !== true) refuse(error, expected, message ?? `The ${expected.name ? `"${expected.name}" ` : ""}validation function is expected to return "true". Received ${show(result)}`, fn.name, fn);
}

const NOTHING = {};

function expectsError(fn, actual, error, message) {
  if (typeof error === "string") {
    if (message !== undefined) throw wrongType("error", "of type function or an instance of Error, RegExp, or Object", error);
    if (actual !== NOTHING && (typeof actual === "object" && actual !== null ? actual.message : actual) === error) {
      throw coded(TypeError, "ERR_AMBIGUOUS_ARGUMENT", `The "error/message" argument is ambiguous. The error message "${error}" is identical to the message.`);
    }
    message = error;
    error = undefined;
  } else if (error !== null && error !== undefined && typeof error !== "object" && typeof error !== "function") {
    throw wrongType("error", "of type function or an instance of Error, RegExp, or Object", error);
  }
  if (actual === NOTHING) {
    const name = error?.name ? ` (${error.name})` : "";
    const kind = fn === functions.rejects ? "rejection" : "exception";
    refuse(undefined, error, `Missing expected ${kind}${name}${message ? `: ${message}` : "."}`, fn.name, fn);
  }
  if (error) matches(actual, error, message, fn);
}

function expectsNoError(fn, actual, error, message) {
  if (actual === NOTHING) return;
  if (typeof error === "string") {
    message = error;
    error = undefined;
  }
  const fits = !error || (types.isRegExp(error) ? RegExpPrototypeExec(error, `${actual}`) !== null : actual instanceof error);
  if (!fits) throw actual;
  const kind = fn === functions.doesNotReject ? "rejection" : "exception";
  refuse(actual, error, `Got unwanted ${kind}${message ? `: ${message}` : "."}\nActual message: "${actual?.message}"`, fn.name, fn);
}

function thrown(fn) {
  checks.function(fn, "fn");
  try {
    fn();
  } catch (error) {
    return error;
  }
  return NOTHING;
}

async function rejection(promise) {
  if (typeof promise === "function") {
    promise = promise();
    if (typeof promise?.then !== "function") throw coded(TypeError, "ERR_INVALID_RETURN_VALUE", 'Expected instance of Promise to be returned from the "promiseFn" function');
  } else if (typeof promise?.then !== "function" || typeof promise.catch !== "function") {
    throw wrongType("promiseFn", "of type function or an instance of Promise", promise);
  }
  try {
    await promise;
  } catch (error) {
    return error;
  }
  return NOTHING;
}

function matchText(text, pattern, message, fn, wanted) {
  if (!types.isRegExp(pattern)) throw wrongType("regexp", "an instance of RegExp", pattern);
  if (typeof text === "string" && (RegExpPrototypeExec(pattern, text) !== null) === wanted) return;
  if (internal.isError(message)) throw message;
  message ||= typeof text !== "string" ? `The "string" argument must be of type string. Received type ${typeof text} (${show(text)})`
    : `${wanted ? "The input did not match the regular expression " : "The input was expected to not match the regular expression "}${show(pattern)}. Input:\n\n${show(text)}\n`;
  refuse(text, pattern, message, fn.name, fn);
}

// comparison makes an assertion of two values.
function comparison(name, holds) {
  const made = {
    [name](actual, expected, message) {
      needTwo(arguments.length);
      if (!holds(actual, expected)) refuse(actual, expected, message, operators[name] ?? name, made[name]);
    },
  };
  return made;
}
const operators = { __proto__: null, equal: "==", notEqual: "!=" };

const functions = {
  ...comparison("equal", (a, b) => a == b || (a !== a && b !== b)), // eslint-disable-line eqeqeq
  ...comparison("notEqual", (a, b) => !(a == b || (a !== a && b !== b))), // eslint-disable-line eqeqeq
  ...comparison("deepEqual", (a, b) => deepEqual(a, b, false)),
  ...comparison("notDeepEqual", (a, b) => !deepEqual(a, b, false)),
  ...comparison("deepStrictEqual", (a, b) => deepEqual(a, b, true)),
  ...comparison("notDeepStrictEqual", (a, b) => !deepEqual(a, b, true)),
  ...comparison("strictEqual", ObjectIs),
  ...comparison("notStrictEqual", (a, b) => !ObjectIs(a, b)),
  ...comparison("partialDeepStrictEqual", (a, b) => partial(a, b)),
  fail(message = "Failed") {
    if (internal.isError(message)) throw message;
    const error = new AssertionError({ message, operator: "fail", stackStartFn: functions.fail });
    error.generatedMessage = arguments.length === 0;
    throw error;
  },
  throws(fn, ...args) { expectsError(functions.throws, thrown(fn), ...args); },
  doesNotThrow(fn, ...args) { expectsNoError(functions.doesNotThrow, thrown(fn), ...args); },
  async rejects(promise, ...args) { expectsError(functions.rejects, await rejection(promise), ...args); },
  async doesNotReject(promise, ...args) { expectsNoError(functions.doesNotReject, await rejection(promise), ...args); },
  ifError(error) {
    if (error === null || error === undefined) return;
    const text = typeof error === "object" && typeof error.message === "string" ? error.message || error.constructor?.name : show(error);
    throw new AssertionError({ actual: error, expected: null, operator: "ifError", message: `ifError got unwanted exception: ${text}`, stackStartFn: functions.ifError });
  },
  match(text, pattern, message) { matchText(text, pattern, message, functions.match, true); },
  doesNotMatch(text, pattern, message) { matchText(text, pattern, message, functions.doesNotMatch, false); },
};

function partial(actual, expected) {
  if (expected === null || typeof expected !== "object" || actual === null || typeof actual !== "object") return deepEqual(actual, expected, true);
  if (types.isMap(expected) || types.isSet(expected) || primordials.ArrayIsArray(expected)) {
    const list = [...expected];
    const all = [...actual];
    return list.every((e) => all.some((a) => partial(a, e)));
  }
  const keys = ObjectKeys(expected);
  if (keys.length === 0) return types.isDate(expected) || types.isRegExp(expected) ? deepEqual(actual, expected, true) : true;
  return keys.every((key) => key in actual && partial(actual[key], expected[key]));
}

function assert(...args) { ReflectApply(ok, undefined, args); }
put(assert, functions);
put(assert, { ok, AssertionError });
function strict(...args) { ReflectApply(ok, undefined, args); }
put(strict, functions);
put(strict, {
  ok, AssertionError, equal: functions.strictEqual, notEqual: functions.notStrictEqual, deepEqual: functions.deepStrictEqual,
  notDeepEqual: functions.notDeepStrictEqual, strict,
});
put(assert, { strict });
internal.nodeModules.assert = assert;
