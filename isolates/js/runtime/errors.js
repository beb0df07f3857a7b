// runtime/errors.js holds DOMException and turns any thrown value into text without trusting the value.

"use strict";

const {
  Error, ErrorCaptureStackTrace, ErrorPrototype, ErrorPrototypeToString, ErrorStackGetter,
  ObjectDefineProperty, ObjectPrototypeHasOwnProperty, ReflectDefineProperty,
  ObjectSetPrototypeOf, ReflectApply, ReflectGetOwnPropertyDescriptor, ReflectGetPrototypeOf, StringPrototypeEndsWith, StringPrototypeIncludes,
  StringPrototypeIndexOf, StringPrototypeSlice, StringPrototypeStartsWith, SymbolPrototypeToString, sealedProto,
} = primordials;
const { askOps, defineConstants, defineInterface, illegalInvocation, toDOMString } = internal;

const codes = {
  __proto__: null,
  IndexSizeError: 1, HierarchyRequestError: 3, WrongDocumentError: 4, InvalidCharacterError: 5, NoModificationAllowedError: 7,
  NotFoundError: 8, NotSupportedError: 9, InUseAttributeError: 10, InvalidStateError: 11, SyntaxError: 12,
  InvalidModificationError: 13, NamespaceError: 14, InvalidAccessError: 15, TypeMismatchError: 17, SecurityError: 18,
  NetworkError: 19, AbortError: 20, URLMismatchError: 21, QuotaExceededError: 22, TimeoutError: 23, InvalidNodeTypeError: 24,
  DataCloneError: 25,
};

class DOMException {
  #message;
  #name;
  constructor(message = "", name = "Error") {
    this.#message = toDOMString(message);
    this.#name = toDOMString(name);
    ErrorCaptureStackTrace(this);
  }
  get name() {
    if (!(#name in this)) throw illegalInvocation("DOMException");
    return this.#name;
  }
  get message() {
    if (!(#name in this)) throw illegalInvocation("DOMException");
    return this.#message;
  }
  get code() {
    if (!(#name in this)) throw illegalInvocation("DOMException");
    return codes[this.#name] ?? 0;
  }
  static {
    internal.isDOMException = (value) => typeof value === "object" && value !== null && #name in value;
    internal.domExceptionParts = (value) => ({ __proto__: null, name: value.#name, message: value.#message });
  }
}
ObjectSetPrototypeOf(DOMException.prototype, ErrorPrototype);
defineInterface(DOMException, "DOMException");
defineConstants(DOMException, {
  __proto__: null,
  INDEX_SIZE_ERR: 1, DOMSTRING_SIZE_ERR: 2, HIERARCHY_REQUEST_ERR: 3, WRONG_DOCUMENT_ERR: 4, INVALID_CHARACTER_ERR: 5,
  NO_DATA_ALLOWED_ERR: 6, NO_MODIFICATION_ALLOWED_ERR: 7, NOT_FOUND_ERR: 8, NOT_SUPPORTED_ERR: 9, INUSE_ATTRIBUTE_ERR: 10,
  INVALID_STATE_ERR: 11, SYNTAX_ERR: 12, INVALID_MODIFICATION_ERR: 13, NAMESPACE_ERR: 14, INVALID_ACCESS_ERR: 15,
  VALIDATION_ERR: 16, TYPE_MISMATCH_ERR: 17, SECURITY_ERR: 18, NETWORK_ERR: 19, ABORT_ERR: 20, URL_MISMATCH_ERR: 21,
  QUOTA_EXCEEDED_ERR: 22, TIMEOUT_ERR: 23, INVALID_NODE_TYPE_ERR: 24, DATA_CLONE_ERR: 25,
});
internal.DOMException = DOMException;
primordials.isDOMException = internal.isDOMException; // for Error.isError

// ---- the text of a thrown value ----

const RUNTIME_FRAME = "pinwheel:runtime/";
const MAX_STACK = 16384;
const MAX_MESSAGE = 4096;

// proxyDetails(value) returns [target, handler] for a Proxy and undefined for any other value. Without the native
// function, only the traps of a Proxy could reveal it.
const proxyDetails = typeof host.proxyDetails === "function" ? host.proxyDetails : () => undefined;

function isProxy(value) {
  return proxyDetails(value) !== undefined;
}

function isError(value) {
  return primordials.ErrorIsError(value) || internal.isDOMException(value);
}

// dataProperty reads a property along the prototype chain. It runs no getters and, with the native function, no proxy
// traps.
function dataProperty(object, key) {
  for (let i = 0; i < 32 && object !== null && object !== undefined; i++) {
    if (isProxy(object)) return undefined;
    const descriptor = ReflectGetOwnPropertyDescriptor(object, key);
    if (descriptor !== undefined) {
      return ObjectPrototypeHasOwnProperty(descriptor, "value") ? descriptor.value : undefined;
    }
    object = ReflectGetPrototypeOf(object);
  }
  return undefined;
}

// hasGetter reports whether reading a property would run a getter.
function hasGetter(object, key) {
  for (let i = 0; i < 32 && object !== null && object !== undefined; i++) {
    if (isProxy(object)) return true;
    const descriptor = ReflectGetOwnPropertyDescriptor(object, key);
    if (descriptor !== undefined) return !ObjectPrototypeHasOwnProperty(descriptor, "value");
    object = ReflectGetPrototypeOf(object);
  }
  return false;
}

// rawStack returns an error's stack as V8 or handler code set it, or "".
function rawStack(error) {
  try {
    const descriptor = ReflectGetOwnPropertyDescriptor(error, "stack");
    if (descriptor === undefined) return "";
    const value = ObjectPrototypeHasOwnProperty(descriptor, "value") ? descriptor.value
      : descriptor.get === ErrorStackGetter ? ReflectApply(ErrorStackGetter, error, []) : undefined;
    return typeof value === "string" ? value : "";
  } catch {
    return "";
  }
}

// cleanStack removes the runtime's own frames and limits the length.
function cleanStack(stack) {
  let out = "";
  let at = 0;
  while (at < stack.length && out.length < MAX_STACK) {
    let end = StringPrototypeIndexOf(stack, "\n", at);
    if (end === -1) end = stack.length;
    const line = StringPrototypeSlice(stack, at, end);
    const isFrame = StringPrototypeStartsWith(line, "    at ");
    if (!(isFrame && StringPrototypeIncludes(line, RUNTIME_FRAME))) out += (at === 0 ? "" : "\n") + line;
    at = end + 1;
  }
  return out.length > MAX_STACK ? StringPrototypeSlice(out, 0, MAX_STACK) : out;
}

// ---- what handler code sees as error.stack ----

const BUNDLE_FRAME = "bundle:";
const FRAME = "\n    at ";
const NATIVE_FRAME = "(<anonymous>)";

// authorFrames writes the frames of V8 as lines. It leaves out those of the runtime with the functions of V8 that they
// call, and has Go map those of the bundle to the author's files.
function authorFrames(sites) {
  let frames = "";
  let native = ""; // frames of V8's functions whose caller is not known yet
  let mapped = false;
  for (let i = 0; i < sites.length && frames.length < MAX_STACK; i++) {
    const site = primordials.CallSitePrototypeToString(sites[i]);
    const line = FRAME + site;
    if (StringPrototypeIncludes(site, RUNTIME_FRAME)) native = "";
    else if (StringPrototypeEndsWith(site, NATIVE_FRAME)) native += line;
    else {
      frames += native + line;
      native = "";
      mapped ||= StringPrototypeIncludes(site, BUNDLE_FRAME);
    }
  }
  frames += native;
  return mapped ? host.ask(askOps.FRAMES, frames) : frames;
}

// prepareStackTrace is Error.prepareStackTrace: V8 calls it when the stack of an error is read first. Handler code may
// replace it, as in Node.
function prepareStackTrace(error, sites) {
  let text;
  try {
    text = ErrorPrototypeToString(error);
  } catch {
    text = "<error>"; // as V8 does
  }
  return text + authorFrames(sites);
}
ObjectDefineProperty(Error, "prepareStackTrace",
  { __proto__: null, value: prepareStackTrace, writable: true, enumerable: false, configurable: true });

// stackHere keeps the stack of a call, for an error that is made when the call is over. Who has it must drop it when the
// call is over: it keeps the functions of the stack and what they know, and so, in a chain of calls, all calls before.
internal.stackHere = () => {
  const holder = { __proto__: null };
  ErrorCaptureStackTrace(holder);
  return holder;
};

// withStack gives the stack of a call to an error that the runtime made when the call was over. An error that has frames
// keeps them.
internal.withStack = (holder, error) => {
  if (!isError(error) || StringPrototypeIncludes(rawStack(error), FRAME)) return error;
  const frames = rawStack(holder);
  const at = StringPrototypeIndexOf(frames, FRAME);
  if (at === -1) return error;
  const value = describe(error).text + StringPrototypeSlice(frames, at);
  ReflectDefineProperty(error, "stack", { __proto__: null, value, writable: true, enumerable: false, configurable: true });
  return error;
};

class Description {
  name;
  message;
  text;
  stack;
  constructor(name, message, text, stack) {
    this.name = name;
    this.message = message;
    this.text = text;
    this.stack = stack;
  }
}
sealedProto(Description);

function clip(text) {
  return text.length > MAX_MESSAGE ? StringPrototypeSlice(text, 0, MAX_MESSAGE) + "…" : text;
}

// absent maps the message for a missing global to the reason why a worker does not have it, or to its replacement.
const absent = {
  __proto__: null,
  "SharedArrayBuffer is not defined": "a worker has none, since nothing bounds shared memory",
  "Atomics is not defined": "a worker has none, since it has no shared memory",
  "Buffer is not defined": "a worker has it if its manifest says \"node\": true; it has Uint8Array, TextEncoder, atob() and btoa() anyway",
  "Worker is not defined": "a worker starts no threads; env.QUEUE.send() has another event run",
  "SharedWorker is not defined": "a worker starts no threads; env.QUEUE.send() has another event run",
  "importScripts is not defined": "a worker has import, and deploy bundles what is imported",
  "XMLHttpRequest is not defined": "a worker has fetch()",
  "FileReader is not defined": "a worker has the methods of Blob: text(), arrayBuffer(), bytes() and stream()",
  "localStorage is not defined": "a worker stores nothing; what lasts is behind fetch()",
  "sessionStorage is not defined": "a worker stores nothing; what lasts is behind fetch()",
  "indexedDB is not defined": "a worker stores nothing; what lasts is behind fetch()",
  "document is not defined": "a worker has no document",
  "window is not defined": "a worker has no window; globalThis and self are the global object",
  "global is not defined": "a worker has it if its manifest says \"node\": true; it has globalThis and self anyway",
  "module is not defined": "a worker is an ES module: export what others import",
  "exports is not defined": "a worker is an ES module: export what others import",
  "__dirname is not defined": "a worker has no files",
  "__filename is not defined": "a worker has no files",
  "Deno is not defined": "a worker has web APIs only; variables come as env, the second argument of a handler",
  "Bun is not defined": "a worker has web APIs only; variables come as env, the second argument of a handler",
  "Temporal is not defined": "this V8 has none; the npm packages temporal-polyfill and @js-temporal/polyfill do its work",
  "process is not defined": "a worker has it if its manifest says \"node\": true; variables come as env, the second argument of a handler",
  "require is not defined": "a worker has import, and deploy bundles what is imported",
};

// generated explains V8's message for eval(text) and new Function(text).
const generated = {
  __proto__: null,
  "Code generation from strings disallowed for this context":
    "a worker runs only the code of its bundle, and neither eval(text) nor new Function(text): import the code, use a closure, or compile templates and schemas before deploy",
};

// whyAbsent returns an explanation for the reader of the log. The error keeps V8's message.
function whyAbsent(name, message) {
  const why = name === "ReferenceError" ? absent[message] : name === "EvalError" ? generated[message] : undefined;
  return why === undefined ? "" : ` (${why})`;
}

function describeError(error) {
  let name;
  let message;
  if (internal.isDOMException(error)) {
    const parts = internal.domExceptionParts(error);
    name = parts.name;
    message = parts.message;
  } else {
    name = dataProperty(error, "name");
    message = dataProperty(error, "message");
  }
  name = typeof name === "string" ? clip(name) : "Error";
  message = typeof message === "string" ? clip(message) : "";
  const text = (message === "" ? name : name === "" ? message : `${name}: ${message}`) + whyAbsent(name, message);
  // V8 writes the first line of a stack on the first read, from name and message. If these are getters, the read
  // would run them, so the code does not read the stack.
  const readable = internal.isDOMException(error) || !(hasGetter(error, "name") || hasGetter(error, "message"));
  return new Description(name, message, text, readable ? cleanStack(rawStack(error)) : "");
}

function describeOther(value) {
  let text;
  if (typeof value === "string") text = value;
  else if (typeof value === "symbol") text = SymbolPrototypeToString(value);
  else if (typeof value === "object" || typeof value === "function") text = internal.inspectBrief(value);
  else text = `${value}`;
  return new Description("", clip(text), clip(text), "");
}

// describe returns {name, message, text, stack} of any thrown value and never throws. text is "Name: message".
function describe(value) {
  try {
    return isError(value) ? describeError(value) : describeOther(value);
  } catch {
    return new Description("", "a value that cannot be described", "a value that cannot be described", "");
  }
}

internal.describe = describe;
internal.cleanStack = cleanStack;
internal.rawStack = rawStack;
internal.isError = isError;
internal.isProxy = isProxy;
internal.proxyDetails = proxyDetails;
internal.dataProperty = dataProperty;
