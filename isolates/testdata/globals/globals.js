// What the global object holds, and the shape Web IDL gives it.

const ecmascript = ["AggregateError", "Array", "ArrayBuffer", "AsyncDisposableStack", "BigInt", "BigInt64Array", "BigUint64Array",
  "Boolean", "DataView", "Date", "DisposableStack", "Error", "EvalError", "FinalizationRegistry", "Float16Array", "Float32Array",
  "Float64Array", "Function", "Infinity", "Int16Array", "Int32Array", "Int8Array", "Intl", "Iterator", "JSON", "Map", "Math", "NaN",
  "Number", "Object", "Promise", "Proxy", "RangeError", "ReferenceError", "Reflect", "RegExp", "Set", "String", "SuppressedError",
  "Symbol", "SyntaxError", "TypeError", "URIError", "Uint16Array", "Uint32Array", "Uint8Array", "Uint8ClampedArray", "WeakMap",
  "WeakRef", "WeakSet", "decodeURI", "decodeURIComponent", "encodeURI", "encodeURIComponent", "escape", "eval", "globalThis",
  "isFinite", "isNaN", "parseFloat", "parseInt", "undefined", "unescape"];

const interfaces = ["AbortController", "AbortSignal", "Blob", "BroadcastChannel", "ByteLengthQueuingStrategy", "Cache", "CacheStorage", "CloseEvent", "CompressionStream", "CountQueuingStrategy", "Crypto", "CryptoKey",
  "CustomEvent", "DOMException", "DecompressionStream", "ErrorEvent", "Event", "EventSource", "EventTarget", "File", "FixedLengthStream", "FormData", "HTMLRewriter", "Headers", "IdentityTransformStream", "MessageChannel", "MessageEvent", "MessagePort", "Navigator", "Performance", "PerformanceEntry", "PerformanceMark",
  "PerformanceMeasure", "PerformanceObserver", "PerformanceObserverEntryList",
  "PromiseRejectionEvent", "QuotaExceededError", "ReadableByteStreamController", "ReadableStream", "ReadableStreamBYOBReader",
  "ReadableStreamBYOBRequest", "ReadableStreamDefaultController", "ReadableStreamDefaultReader", "Request", "Response", "Scheduler",
  "SubtleCrypto", "TextDecoder", "TextDecoderStream", "TextEncoder", "TextEncoderStream", "TransformStream", "TransformStreamDefaultController", "URL", "URLPattern", "URLSearchParams", "WebSocket", "WebSocketPair",
  "WritableStream", "WritableStreamDefaultController", "WritableStreamDefaultWriter"];

const operations = ["addEventListener", "atob", "btoa", "clearImmediate", "clearInterval", "clearTimeout", "dispatchEvent", "fetch", "queueMicrotask",
  "removeEventListener", "reportError", "setImmediate", "setInterval", "setTimeout", "structuredClone"];

const objects = ["AsyncContext", "AsyncLocalStorage", "WebAssembly", "caches", "console", "crypto", "navigator", "onerror",
  "onrejectionhandled", "onunhandledrejection", "performance", "scheduler", "self", "shared"];

test("the global object holds what is listed and nothing else", () => {
  const known = new Set([...ecmascript, ...interfaces, ...operations, ...objects]);
  const unknown = Object.getOwnPropertyNames(globalThis).filter((name) => !known.has(name));
  assert.deepEqual(unknown, []);
  const missing = [...known].filter((name) => !Object.hasOwn(globalThis, name));
  assert.deepEqual(missing, []);
  assert.deepEqual(Object.getOwnPropertySymbols(globalThis).filter((s) => s !== Symbol.toStringTag), []);
});

test("what cannot be bounded is gone", () => {
  for (const name of ["SharedArrayBuffer", "Atomics"]) assert.equal(typeof globalThis[name], "undefined", name);
});

test("interfaces are writable, configurable, not enumerable globals", () => {
  for (const name of interfaces) {
    const d = Object.getOwnPropertyDescriptor(globalThis, name);
    assert.deepEqual([d.writable, d.enumerable, d.configurable], [true, false, true], name);
    assert.equal(d.value.name, name);
    const p = Object.getOwnPropertyDescriptor(d.value, "prototype");
    assert.deepEqual([p.writable, p.enumerable, p.configurable], [false, false, false], name);
    const tag = Object.getOwnPropertyDescriptor(d.value.prototype, Symbol.toStringTag);
    assert.deepEqual([tag.value, tag.writable, tag.enumerable, tag.configurable], [name, false, false, true], name);
    assert.throws(() => d.value(), TypeError, `${name} without new`);
  }
});

test("members of interfaces are enumerable, own the prototype and check their receiver", () => {
  for (const name of interfaces) {
    const { prototype } = globalThis[name];
    for (const key of Object.getOwnPropertyNames(prototype)) {
      if (key === "constructor") continue;
      const d = Object.getOwnPropertyDescriptor(prototype, key);
      assert.ok(d.enumerable, `${name}.${key} is enumerable`);
      if (d.get !== undefined) {
        assert.equal(d.get.name, `get ${key}`);
        assert.equal(d.get.length, 0);
        assert.ok(!("prototype" in d.get), `${name}.${key} is no constructor`);
      }
      if (typeof d.value === "function") {
        assert.equal(d.value.name, key);
        assert.equal("prototype" in d.value, name + "." + key === "Crypto.DigestStream", `${name}.${key} is no constructor`);
      }
    }
  }
});

test("attributes refuse other receivers", () => {
  for (const name of interfaces) {
    const { prototype } = globalThis[name];
    for (const key of Object.getOwnPropertyNames(prototype)) {
      const d = Object.getOwnPropertyDescriptor(prototype, key);
      if (d.get === undefined) continue;
      let result;
      try {
        result = d.get.call({});
      } catch (error) {
        assert.equal(error.constructor, TypeError, `${name}.${key}`);
        continue;
      }
      assert.ok(result instanceof Promise, `${name}.${key} throws or rejects`);
      result.catch(() => {});
    }
  }
});

test("operations of the global object check their receiver", () => {
  for (const name of ["atob", "btoa", "clearInterval", "clearTimeout", "queueMicrotask", "reportError", "setInterval", "setTimeout", "structuredClone"]) {
    assert.throws(() => globalThis[name].call({}, () => {}), TypeError, name);
    assert.throws(() => globalThis[name].call(1, () => {}), TypeError, name);
  }
  for (const self of [undefined, null, globalThis]) assert.equal(btoa.call(self, "a"), "YQ==");
  clearTimeout.call(null, setTimeout.call(undefined, () => {}, 1000));
});

test("operations are enumerable functions", () => {
  const lengths = { addEventListener: 2, atob: 1, btoa: 1, clearImmediate: 0, clearInterval: 0, clearTimeout: 0, dispatchEvent: 1, fetch: 1, queueMicrotask: 1,
    removeEventListener: 2, reportError: 1, setImmediate: 1, setInterval: 1, setTimeout: 1, structuredClone: 1 };
  for (const name of operations) {
    const d = Object.getOwnPropertyDescriptor(globalThis, name);
    assert.deepEqual([d.writable, d.enumerable, d.configurable], [true, true, true], name);
    assert.equal(d.value.name, name);
    assert.equal(d.value.length, lengths[name], `${name}.length`);
    assert.throws(() => new d.value(), TypeError, `new ${name}`);
  }
});

test("constructors have the lengths of their required arguments", () => {
  const lengths = { AbortController: 0, AbortSignal: null, Blob: 0, BroadcastChannel: 1, ByteLengthQueuingStrategy: 1, CountQueuingStrategy: 1, CustomEvent: 1,
    DOMException: 0, ErrorEvent: 1, Event: 1, EventSource: 1, EventTarget: 0, File: 2, FormData: 0, Headers: 0, MessageChannel: 0, MessageEvent: 1, PerformanceMark: 1, PromiseRejectionEvent: 2, QuotaExceededError: 0, ReadableStream: 0,
    ReadableStreamBYOBReader: 1, ReadableStreamDefaultReader: 1, Request: 1, Response: 0, TextDecoder: 0, TextEncoder: 0,
    TransformStream: 0, URL: 1, URLSearchParams: 0, WritableStream: 0, WritableStreamDefaultWriter: 1 };
  for (const [name, length] of Object.entries(lengths)) {
    if (length !== null) assert.equal(globalThis[name].length, length, name);
  }
});

test("interfaces without constructors refuse", () => {
  for (const name of ["AbortSignal", "Cache", "CacheStorage", "Crypto", "MessagePort", "PerformanceEntry", "PerformanceMeasure", "Scheduler", "CryptoKey", "SubtleCrypto", "Navigator", "Performance",
    "ReadableStreamBYOBRequest",
    "ReadableStreamDefaultController", "ReadableByteStreamController", "WritableStreamDefaultController",
    "TransformStreamDefaultController"]) {
    assert.throws(() => new globalThis[name](), TypeError, name);
    assert.throws(() => new globalThis[name](Object.create(null)), TypeError, name);
  }
});

test("lengths of methods", () => {
  const cases = [[Headers, "append", 2], [Headers, "get", 1], [Headers, "getSetCookie", 0], [URLSearchParams, "append", 2], [URLSearchParams, "has", 1],
    [URLSearchParams, "delete", 1], [FormData, "append", 2], [FormData, "set", 2], [Blob, "slice", 0], [Response, "clone", 0],
    [Response, "json", 0], [EventTarget, "addEventListener", 2], [EventTarget, "dispatchEvent", 1], [ReadableStream, "pipeTo", 1],
    [ReadableStream, "pipeThrough", 1], [ReadableStream, "getReader", 0], [ReadableStream, "tee", 0], [TextDecoder, "decode", 0],
    [TextEncoder, "encodeInto", 2], [AbortController, "abort", 0], [WritableStreamDefaultWriter, "write", 0], [Crypto, "getRandomValues", 1],
    [SubtleCrypto, "importKey", 5], [SubtleCrypto, "digest", 2], [MessagePort, "postMessage", 1], [MessageEvent, "initMessageEvent", 1], [Headers, "forEach", 1], [URLSearchParams, "keys", 0]];
  for (const [Class, method, length] of cases) assert.equal(Class.prototype[method].length, length, `${Class.name}.${method}`);
  assert.equal(Response.json.length, 1);
  assert.equal(Response.redirect.length, 1);
  assert.equal(Response.error.length, 0);
  assert.equal(URL.canParse.length, 1);
  assert.equal(URL.parse.length, 1);
  assert.equal(AbortSignal.timeout.length, 1);
  assert.equal(AbortSignal.any.length, 1);
});

test("self, navigator, performance", () => {
  assert.equal(self, globalThis);
  assert.equal(navigator.userAgent, "Pinwheel");
  assert.equal(Object.prototype.toString.call(navigator), "[object Navigator]");
  const a = performance.now();
  const b = performance.now();
  assert.ok(typeof a === "number" && b >= a);
  assert.equal(Math.round(a * 10) / 10, a, "no finer than 0.1 ms");
  assert.ok(Math.abs(performance.timeOrigin + a - Date.now()) < 60000, "the origin is a time of day");
  assert.deepEqual(Object.keys(performance.toJSON()), ["timeOrigin"]);
  assert.ok(performance instanceof EventTarget);
  assert.deepEqual([navigator.language, navigator.languages, navigator.hardwareConcurrency], ["en-US", ["en-US"], 1]);
  assert.ok(Object.isFrozen(navigator.languages) && navigator.languages === navigator.languages);
});

test("QuotaExceededError", () => {
  const e = new QuotaExceededError("m", { quota: 1, requested: 2.5 });
  assert.deepEqual([e.name, e.message, e.code, e.quota, e.requested], ["QuotaExceededError", "m", 22, 1, 2.5]);
  assert.ok(e instanceof DOMException && e instanceof Error && typeof e.stack === "string");
  const copy = structuredClone({ e }).e;
  assert.deepEqual([copy.constructor, copy.message, copy.quota, copy.requested], [QuotaExceededError, "m", 1, 2.5]);
  const empty = new QuotaExceededError(undefined, null);
  assert.deepEqual([empty.message, empty.quota, empty.requested], ["", null, null]);
  for (const bad of [{ quota: -1 }, { requested: -0.5 }, { quota: 2, requested: 1 }]) assert.throws(() => new QuotaExceededError("", bad), RangeError);
  for (const bad of [{ quota: NaN }, { requested: Infinity }, 5]) assert.throws(() => new QuotaExceededError("", bad), TypeError);
  const old = new DOMException("", "QuotaExceededError");
  assert.deepEqual([old.constructor, old.code], [DOMException, 22]);
  let thrown;
  try { crypto.getRandomValues(new Uint8Array(65537)); } catch (error) { thrown = error; }
  assert.deepEqual([thrown.constructor, thrown.quota, thrown.requested], [QuotaExceededError, null, null]);
});

test("DOMException", () => {
  const e = new DOMException("what", "DataCloneError");
  assert.equal(e.name, "DataCloneError");
  assert.equal(e.message, "what");
  assert.equal(e.code, 25);
  assert.ok(e instanceof Error);
  assert.equal(Object.getPrototypeOf(DOMException.prototype), Error.prototype);
  assert.equal(typeof e.stack, "string");
  assert.equal(String(e), "DataCloneError: what");
  assert.equal(new DOMException().name, "Error");
  assert.equal(new DOMException().message, "");
  assert.equal(new DOMException("x", "Nonsense").code, 0);
  assert.equal(new DOMException(undefined, undefined).name, "Error");
  assert.equal(DOMException.NOT_FOUND_ERR, 8);
  assert.equal(DOMException.prototype.DATA_CLONE_ERR, 25);
  assert.throws(() => { "use strict"; DOMException.ABORT_ERR = 1; }, TypeError);
  const codes = { IndexSizeError: 1, HierarchyRequestError: 3, WrongDocumentError: 4, InvalidCharacterError: 5, NoModificationAllowedError: 7,
    NotFoundError: 8, NotSupportedError: 9, InUseAttributeError: 10, InvalidStateError: 11, SyntaxError: 12, InvalidModificationError: 13,
    NamespaceError: 14, InvalidAccessError: 15, TypeMismatchError: 17, SecurityError: 18, NetworkError: 19, AbortError: 20, URLMismatchError: 21,
    QuotaExceededError: 22, TimeoutError: 23, InvalidNodeTypeError: 24, DataCloneError: 25, EncodingError: 0, NotReadableError: 0 };
  for (const [name, code] of Object.entries(codes)) assert.equal(new DOMException("", name).code, code, name);
  assert.throws(() => Object.getOwnPropertyDescriptor(DOMException.prototype, "name").get.call(new Error()), TypeError);
});

test("Error.isError knows exceptions of the platform", () => {
  for (const error of [new Error(), new TypeError(), new DOMException(), new QuotaExceededError()]) assert.equal(Error.isError(error), true);
  for (const other of [undefined, null, 1, "Error", {}, Object.create(DOMException.prototype), Object.create(Error.prototype), new Proxy(new Error(), {})]) {
    assert.equal(Error.isError(other), false, show(other));
  }
  const d = Object.getOwnPropertyDescriptor(Error, "isError");
  assert.deepEqual([d.value.name, d.value.length, d.writable, d.enumerable, d.configurable, "prototype" in d.value], ["isError", 1, true, false, true, false]);
});

test("objects of the platform are attributes of the global object", async () => {
  for (const [name, replaceable] of [["crypto", false], ["navigator", false], ["performance", true], ["scheduler", true], ["self", true]]) {
    const d = Object.getOwnPropertyDescriptor(globalThis, name);
    assert.deepEqual([d.enumerable, d.configurable, d.get.name, d.get.length], [true, true, `get ${name}`, 0]);
    assert.equal(d.get.call(undefined), globalThis[name]);
    assert.equal(d.get.call(null), globalThis[name]);
    assert.equal(d.get.call(globalThis), globalThis[name]);
    assert.throws(() => d.get.call({}), TypeError);
    if (!replaceable) {
      assert.equal(d.set, undefined);
      assert.throws(() => { globalThis[name] = 1; }, TypeError);
      continue;
    }
    assert.deepEqual([d.set.name, d.set.length], [`set ${name}`, 1]);
    assert.throws(() => d.set.call({}, 1), TypeError);
    await patched(globalThis, name, d, () => {
      globalThis[name] = 5;
      assert.deepEqual(Object.getOwnPropertyDescriptor(globalThis, name), { value: 5, writable: true, enumerable: true, configurable: true });
    });
    assert.equal(typeof globalThis[name], "object");
  }
});
