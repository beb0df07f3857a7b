// node/errors.js has the errors of Node's modules, with their codes, and the checks of arguments that throw them.

"use strict";

const {
  ArrayIsArray, Error, NumberIsInteger, NumberIsNaN, MathAbs, ObjectDefineProperty, RangeError, ReflectApply,
  StringPrototypeEndsWith, StringPrototypeIncludes, StringPrototypeSlice, StringPrototypeStartsWith, TypeError,
} = primordials;
const { node } = internal;
const { hide } = node;

const shown = {
  toString() { return `${this.name} [${this.code}]: ${this.message}`; },
};

// coded makes an error with a code.
function coded(Base, code, message) {
  const error = new Base(message);
  ObjectDefineProperty(error, "code", { __proto__: null, value: code, writable: true, enumerable: true, configurable: true });
  hide(error, "toString", shown.toString);
  return error;
}

// received says what a wrong argument is.
function received(value) {
  if (value === null || value === undefined) return ` Received ${value}`;
  if (typeof value === "function") return ` Received function ${value.name}`;
  if (typeof value === "object") {
    const name = value.constructor?.name;
    return name ? ` Received an instance of ${name}` : ` Received ${internal.inspect(value, 0)}`;
  }
  let text = internal.inspect(value);
  if (text.length > 28) text = `${StringPrototypeSlice(text, 0, 25)}...`;
  return ` Received type ${typeof value} (${text})`;
}

// wrongType is the error for an argument of another type than expected, as "of type string" or "an instance of Buffer".
function wrongType(name, expected, value) {
  const what = StringPrototypeEndsWith(name, " argument") ? `The ${name}`
    : `The "${name}" ${StringPrototypeIncludes(name, ".") ? "property" : "argument"}`;
  return coded(TypeError, "ERR_INVALID_ARG_TYPE", `${what} must be ${expected}.${received(value)}`);
}

function wrongValue(name, value, reason = "is invalid") {
  let text = internal.inspect(value);
  if (text.length > 128) text = `${StringPrototypeSlice(text, 0, 128)}...`;
  const what = StringPrototypeIncludes(name, ".") ? "property" : "argument";
  return coded(TypeError, "ERR_INVALID_ARG_VALUE", `The ${what} '${name}' ${reason}. Received ${text}`);
}

// grouped puts an underscore between each three digits.
function grouped(text) {
  let out = "";
  let end = text.length;
  const start = StringPrototypeStartsWith(text, "-") ? 1 : 0;
  for (; end >= start + 4; end -= 3) out = `_${StringPrototypeSlice(text, end - 3, end)}${out}`;
  return `${StringPrototypeSlice(text, 0, end)}${out}`;
}

function outOfRange(name, range, value) {
  let text;
  if (typeof value === "number" && NumberIsInteger(value) && MathAbs(value) > 2 ** 32) text = grouped(`${value}`);
  else if (typeof value === "bigint") {
    text = `${value}`;
    if (value > 2n ** 32n || value < -(2n ** 32n)) text = grouped(text);
    text += "n";
  } else text = internal.inspect(value);
  return coded(RangeError, "ERR_OUT_OF_RANGE", `The value of "${name}" is out of range. It must be ${range}. Received ${text}`);
}

class AbortError extends Error {
  constructor(message = "The operation was aborted", options = undefined) {
    super(message, options);
    hide(this, "name", "AbortError");
    ObjectDefineProperty(this, "code", { __proto__: null, value: "ABORT_ERR", writable: true, enumerable: true, configurable: true });
  }
}

const checks = {
  __proto__: null,
  string(value, name) {
    if (typeof value !== "string") throw wrongType(name, "of type string", value);
  },
  boolean(value, name) {
    if (typeof value !== "boolean") throw wrongType(name, "of type boolean", value);
  },
  function(value, name) {
    if (typeof value !== "function") throw wrongType(name, "of type function", value);
  },
  object(value, name) {
    if (value === null || typeof value !== "object" || ArrayIsArray(value)) throw wrongType(name, "of type object", value);
  },
  array(value, name) {
    if (!ArrayIsArray(value)) throw wrongType(name, "an instance of Array", value);
  },
  number(value, name, least = undefined, most = undefined) {
    if (typeof value !== "number") throw wrongType(name, "of type number", value);
    const low = least !== undefined && value < least;
    const high = most !== undefined && value > most;
    if (low || high || ((least !== undefined || most !== undefined) && NumberIsNaN(value))) {
      const lower = least === undefined ? "" : `>= ${least}`;
      const upper = most === undefined ? "" : `<= ${most}`;
      throw outOfRange(name, `${lower}${lower && upper ? " && " : ""}${upper}`, value);
    }
  },
  integer(value, name, least = -9007199254740991, most = 9007199254740991) {
    if (typeof value !== "number") throw wrongType(name, "of type number", value);
    if (!NumberIsInteger(value)) throw outOfRange(name, "an integer", value);
    if (value < least || value > most) throw outOfRange(name, `>= ${least} && <= ${most}`, value);
  },
  signal(value, name) {
    if (value !== undefined && (value === null || typeof value !== "object" || !("aborted" in value))) {
      throw wrongType(name, "an instance of AbortSignal", value);
    }
  },
  oneOf(value, name, allowed) {
    for (let i = 0; i < allowed.length; i++) if (allowed[i] === value) return;
    let list = "";
    for (let i = 0; i < allowed.length; i++) {
      list += `${i === 0 ? "" : ", "}${typeof allowed[i] === "string" ? `'${allowed[i]}'` : `${allowed[i]}`}`;
    }
    throw wrongValue(name, value, `must be one of: ${list}`);
  },
};

// callLater calls a function when the code that runs now has ended.
function callLater(fn, ...args) {
  internal.queueMicrotask(() => { ReflectApply(fn, undefined, args); });
}

node.AbortError = AbortError;
node.callLater = callLater;
node.checks = checks;
node.coded = coded;
node.outOfRange = outOfRange;
node.received = received;
node.wrongType = wrongType;
node.wrongValue = wrongValue;
