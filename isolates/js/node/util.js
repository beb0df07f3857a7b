// node/util.js is the module node:util.

"use strict";

const {
  ArrayIsArray, Error, Object, ObjectDefineProperties, ObjectDefineProperty, ObjectGetOwnPropertyDescriptors, ObjectGetPrototypeOf,
  ObjectSetPrototypeOf, Promise, ReflectApply, ReflectConstruct, ReflectGet, Symbol, globalThis,
} = primordials;
const { builtin, callLater, checks, coded, kCustomPromisify, later, put, types, wrongType } = internal.node;
const { colors, functions, inspect } = internal.node.inspecting;

const kArgs = Symbol("customPromisifyArgs");

function promisify(original) {
  checks.function(original, "original");
  const own = original[kCustomPromisify];
  if (own) {
    checks.function(own, "The \"util.promisify.custom\" property");
    ObjectDefineProperty(own, kCustomPromisify, { __proto__: null, value: own, enumerable: false, writable: false, configurable: true });
    return own;
  }
  const names = original[kArgs];
  function fn(...args) {
    return new Promise((resolve, reject) => {
      ReflectApply(original, this, [...args, (error, ...values) => {
        if (error) {
          reject(error);
          return;
        }
        if (names !== undefined && values.length > 1) {
          const out = {};
          for (let i = 0; i < names.length; i++) out[names[i]] = values[i];
          resolve(out);
        } else resolve(values[0]);
      }]);
    });
  }
  ObjectSetPrototypeOf(fn, ObjectGetPrototypeOf(original));
  ObjectDefineProperty(fn, kCustomPromisify, { __proto__: null, value: fn, enumerable: false, writable: false, configurable: true });
  return ObjectDefineProperties(fn, ObjectGetOwnPropertyDescriptors(original));
}
put(promisify, { custom: kCustomPromisify });

function callbackify(original) {
  checks.function(original, "original");
  function callbackified(...args) {
    const callback = args.pop();
    checks.function(callback, "last argument");
    ReflectApply(original, this, args).then((value) => callLater(() => ReflectApply(callback, this, [null, value])), (reason) => {
      if (!reason) {
        const error = coded(Error, "ERR_FALSY_VALUE_REJECTION", "Promise was rejected with falsy value");
        error.reason = reason;
        reason = error;
      }
      callLater(() => ReflectApply(callback, this, [reason]));
    });
  }
  const descriptors = ObjectGetOwnPropertyDescriptors(original);
  if (typeof descriptors.length.value === "number") descriptors.length.value++;
  if (typeof descriptors.name.value === "string") descriptors.name.value += "Callbackified";
  return ObjectDefineProperties(callbackified, descriptors);
}

const warned = new primordials.Set();

function deprecate(fn, message, code) {
  checks.function(fn, "fn");
  if (code !== undefined) checks.string(code, "code");
  let told = false;
  function deprecated(...args) {
    if (!told) {
      told = true;
      const again = code !== undefined && primordials.SetPrototypeHas(warned, code);
      if (code !== undefined) primordials.SetPrototypeAdd(warned, code);
      if (!again) builtin("process").emitWarning(message, "DeprecationWarning", code);
    }
    return new.target ? ReflectConstruct(fn, args, new.target) : ReflectApply(fn, this, args);
  }
  ObjectSetPrototypeOf(deprecated, fn);
  if (fn.prototype) deprecated.prototype = fn.prototype;
  return deprecated;
}

function debuglog(set) {
  const name = `${set}`.toUpperCase();
  const wanted = `${builtin("process").env.NODE_DEBUG ?? ""}`.toUpperCase().split(",");
  const enabled = wanted.includes(name) || wanted.includes("*");
  const log = (...args) => { if (enabled) internal.logLine(0, `${name}: ${functions.format(...args)}`); };
  ObjectDefineProperty(log, "enabled", { __proto__: null, get: () => enabled, configurable: true, enumerable: true });
  return log;
}

// withoutEscapes removes what terminals read as commands: ESC [ … letter, and ESC ] … BEL.
function withoutEscapes(text) {
  let out = "";
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i);
    if (c !== 0x1b && c !== 0x9b) {
      out += text[i];
      continue;
    }
    let k = i + 1;
    if (c === 0x1b && text[k] === "]") {
      while (k < text.length && text.charCodeAt(k) !== 7 && text.charCodeAt(k) !== 0x9c && !(text.charCodeAt(k) === 0x1b && text[k + 1] === "\\")) k++;
      if (text.charCodeAt(k) === 0x1b) k++;
    } else {
      while (k < text.length && "[]()#;?".includes(text[k])) k++;
      while (k < text.length && "0123456789;:".includes(text[k])) k++;
    }
    i = k;
  }
  return out;
}

function styleText(format, text, options) {
  checks.string(text, "text");
  const list = ArrayIsArray(format) ? format : [format];
  let before = "";
  let after = "";
  for (let i = 0; i < list.length; i++) {
    if (list[i] === "none") continue;
    const color = colors[list[i]];
    if (color === undefined) checks.oneOf(list[i], "format", Object.keys(colors));
    before += `\u001b[${color[0]}m`;
    after = `\u001b[${color[1]}m${after}`;
  }
  return options?.validateStream === false || options?.stream?.isTTY ? before + text + after : text; // there is no terminal
}

function inherits(constructor, parent) {
  if (constructor === undefined || constructor === null) throw wrongType("ctor", "of type function", constructor);
  if (parent === undefined || parent === null) throw wrongType("superCtor", "of type function", parent);
  if (parent.prototype === undefined) throw wrongType("superCtor.prototype", "of type object", parent.prototype);
  ObjectDefineProperty(constructor, "super_", { __proto__: null, value: parent, writable: true, configurable: true });
  ObjectSetPrototypeOf(constructor.prototype, parent.prototype);
}

function parseEnv(content) {
  checks.string(content, "content");
  const out = {};
  const line = /^\s*(?:export\s+)?([\w.-]+)\s*=\s*(?:'([^']*)'|"((?:[^"\\]|\\[^])*)"|`([^`]*)`|([^\r\n#]*))/gm;
  for (let m = line.exec(content); m !== null; m = line.exec(content)) {
    out[m[1]] = m[2] ?? (m[3] === undefined ? undefined : m[3].replaceAll("\\n", "\n")) ?? m[4] ?? m[5].trim();
  }
  return out;
}

const methods = {
  promisify, callbackify, deprecate, inherits, styleText, parseEnv, inspect,
  debug: debuglog, debuglog,
  isDeepStrictEqual(a, b) { return internal.node.deepEqual(a, b, true); },
  stripVTControlCharacters(text) {
    checks.string(text, "str");
    return withoutEscapes(text);
  },
  toUSVString(text) { return internal.toUSVString(text); },
  aborted(signal, resource) {
    if (signal === undefined) throw wrongType("signal", "an instance of AbortSignal", signal);
    checks.signal(signal, "signal");
    if (resource === null || (typeof resource !== "object" && typeof resource !== "function")) throw wrongType("resource", "of type object", resource);
    if (signal.aborted) return primordials.PromiseResolve();
    return new Promise((resolve) => { signal.addEventListener("abort", resolve, { __proto__: null, once: true }); });
  },
  getSystemErrorName(n) {
    checks.integer(n, "err");
    if (n >= 0) throw internal.node.outOfRange("err", "a negative integer", n);
    return errnos[-n] ?? `Unknown system error ${n}`;
  },
  parseArgs(config) { return internal.node.parseArgs(config); },
  _extend(target, source) {
    if (source === null || typeof source !== "object") return target;
    const keys = Object.keys(source);
    for (let i = keys.length - 1; i >= 0; i--) target[keys[i]] = source[keys[i]];
    return target;
  },
  isArray(value) { return ArrayIsArray(value); },
  isBoolean(value) { return typeof value === "boolean"; },
  isBuffer(value) { return builtin("buffer").Buffer.isBuffer(value); },
  isDate(value) { return types.isDate(value); },
  isError(value) { return internal.isError(value); },
  isFunction(value) { return typeof value === "function"; },
  isNull(value) { return value === null; },
  isNullOrUndefined(value) { return value === null || value === undefined; },
  isNumber(value) { return typeof value === "number"; },
  isObject(value) { return value !== null && typeof value === "object"; },
  isPrimitive(value) { return value === null || (typeof value !== "object" && typeof value !== "function"); },
  isRegExp(value) { return types.isRegExp(value); },
  isString(value) { return typeof value === "string"; },
  isSymbol(value) { return typeof value === "symbol"; },
  isUndefined(value) { return value === undefined; },
  log(...args) { internal.logLine(1, functions.format(...args)); },
};

const errnos = {
  __proto__: null, 1: "EPERM", 2: "ENOENT", 4: "EINTR", 5: "EIO", 9: "EBADF", 11: "EAGAIN", 12: "ENOMEM", 13: "EACCES", 17: "EEXIST",
  20: "ENOTDIR", 21: "EISDIR", 22: "EINVAL", 24: "EMFILE", 28: "ENOSPC", 32: "EPIPE", 98: "EADDRINUSE", 104: "ECONNRESET",
  110: "ETIMEDOUT", 111: "ECONNREFUSED",
};

const module = put({}, methods);
put(module, functions);
put(module, { types });
later(module, "TextDecoder", () => ReflectGet(globalThis, "TextDecoder"));
later(module, "TextEncoder", () => ReflectGet(globalThis, "TextEncoder"));
internal.nodeModules.util = module;
