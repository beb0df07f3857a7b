// node/work.js has what node:crypto and node:zlib share: how they ask Go, the conversion of their arguments, and objects
// that become streams when they are used as one. Synchronous functions ask Go and wait. Those with a callback have Go work
// on another thread, as crypto.subtle does.

"use strict";

const {
  ArrayBufferIsView, ArrayIsArray, List, ObjectSetPrototypeOf, Proxy, ReflectApply, ReflectDefineProperty, ReflectGet, ReflectHas,
  ReflectSet, TypeError, lengthOf, subarray,
} = primordials;
const { askOps, isArrayBuffer, liveBytes, sendOps } = internal;
const { builtin, wrongType, wrongValue } = internal.node;
const { normal, toBytes, toText } = builtin("buffer") && internal.node.codec;
const { over } = internal.node.bufferParts;
const { ask } = host;

// asked has Go carry out a function of internal.subtleOps, while the caller waits. A failure is a string.
function asked(args) {
  return ReflectApply(ask, undefined, list(askOps.SUBTLE, args));
}

// list makes a list of which no code of the worker sees anything.
function list(first, others) {
  const out = new List();
  out[0] = first;
  for (let i = 0; i < others.length; i++) out[i + 1] = plain(others[i]);
  return out;
}

// plain returns an argument for Go. None is an array: one of the worker's would run its getters while it is written.
function plain(value) {
  if (ArrayIsArray(value)) throw new TypeError("an array is no argument of this function");
  return value;
}

// later has Go carry out a function on another thread. made(answer) gives the values of callback after its error, and
// fail(text) makes the error of a failure.
function later(args, made, callback, fail) {
  if (internal.eventIsOver()) throw fail("the event is over");
  const frame = internal.inheritFrame();
  const call = (values) => { internal.callIn(frame, callback, undefined, values); };
  const read = (answer) => {
    if (typeof answer === "string") throw fail(answer);
    return made(answer);
  };
  for (let i = 0; i < args.length; i++) plain(args[i]);
  try {
    internal.beginWork(internal.acting(), sendOps.SUBTLE, args, read, call, (error) => { call([error]); });
  } catch {
    throw fail("the data is too long");
  }
}

// soon calls a callback after the code that runs now.
function soon(callback, ...values) {
  const frame = internal.inheritFrame();
  internal.queueMicrotask(() => { internal.callIn(frame, callback, undefined, values); });
}

// bytesOf returns the bytes of an argument: a string in an encoding, a view or, if it may be one, an ArrayBuffer. Those
// that may be none are the data of update(): Node refuses half a byte there, and drops it elsewhere.
function bytesOf(value, name, encoding = undefined, buffers = true) {
  if (typeof value === "string") {
    const known = encoding === undefined || encoding === null || encoding === "buffer" ? "utf8" : normal(encoding) ?? "utf8";
    if (!buffers && known === "hex" && value.length % 2 !== 0) {
      throw wrongValue("encoding", encoding, `is invalid for data of length ${value.length}`);
    }
    return toBytes(value, known);
  }
  if (ArrayBufferIsView(value) || (buffers && isArrayBuffer(value))) return liveBytes(value);
  throw wrongType(name, buffers ? "of type string or an instance of ArrayBuffer, Buffer, TypedArray, or DataView"
    : "of type string or an instance of Buffer, TypedArray, or DataView", value);
}

// shown is a result as the caller wants it: a Buffer, or a text in an encoding.
function shown(bytes, encoding) {
  const name = encoding === undefined || encoding === null || encoding === "buffer" ? undefined : normal(encoding);
  return name === undefined ? over(bytes) : toText(bytes, name);
}

// PIECE is the most that Go takes in one question. A thread cannot be stopped in the middle of one.
const PIECE = 262144;

// inPieces calls take with parts of bytes.
function inPieces(bytes, take) {
  const n = lengthOf(bytes);
  for (let at = 0; at < n; at += PIECE) take(n <= PIECE ? bytes : subarray(bytes, at, at + PIECE < n ? at + PIECE : n));
}

// LazyTransform is a Transform that is made when it is first used as one. node:stream is loaded then, too.
class LazyTransform {
  _options;
  constructor(options) {
    this._options = options;
  }
}

const state = (name) => ({
  get() {
    ReflectApply(builtin("stream").Transform, this, [this._options]);
    this._writableState.decodeStrings = false;
    return this[name];
  },
  set(value) {
    ReflectDefineProperty(this, name, { __proto__: null, value, writable: true, enumerable: true, configurable: true });
  },
});

function define(name) {
  ReflectDefineProperty(LazyTransform.prototype, name, { __proto__: null, ...state(name), enumerable: true, configurable: true });
}

// become gives LazyTransform its parent.
function become() {
  const { prototype } = builtin("stream").Transform;
  ObjectSetPrototypeOf(LazyTransform.prototype, prototype);
  define("_readableState");
  define("_writableState");
  return prototype;
}
ObjectSetPrototypeOf(LazyTransform.prototype, new Proxy({ __proto__: null }, {
  __proto__: null,
  get: (_, name, self) => ReflectGet(become() && LazyTransform.prototype, name, self),
  set: (_, name, value, self) => ReflectSet(become() && LazyTransform.prototype, name, value, self),
  has: (_, name) => ReflectHas(become() && LazyTransform.prototype, name),
  getPrototypeOf: become,
}));

internal.nodeModules.work = { __proto__: null, LazyTransform, PIECE, asked, bytesOf, inPieces, later, shown, soon };
