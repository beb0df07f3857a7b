// Every interface as its IDL has it: members and no others, their kinds, lengths, names and flags, and who inherits from whom.

// name: [length of the constructor, parent, operations "name/length", read-only attributes, attributes, static operations]
const interfaces = {
  AbortController: [0, "", "abort/0", "signal"],
  AbortSignal: [0, "EventTarget", "throwIfAborted/0", "aborted reason", "onabort", "abort/0 timeout/1 any/1"],
  Blob: [0, "", "slice/0 stream/0 text/0 arrayBuffer/0 bytes/0", "size type"],
  BroadcastChannel: [1, "EventTarget", "postMessage/1 close/0", "name", "onmessage onmessageerror"],
  ByteLengthQueuingStrategy: [1, "", "", "highWaterMark size"],
  Cache: [0, "", "match/1 put/2 delete/1 add/0 addAll/0 keys/0 matchAll/0"],
  CacheStorage: [0, "", "open/1 delete/0 has/0 keys/0 match/0", "default"],
  CloseEvent: [1, "Event", "", "wasClean code reason"],
  CompressionStream: [1, "", "", "readable writable"],
  CountQueuingStrategy: [1, "", "", "highWaterMark size"],
  Crypto: [0, "", "getRandomValues/1 randomUUID/0", "subtle"],
  CryptoKey: [0, "", "", "type extractable algorithm usages"],
  CustomEvent: [1, "Event", "initCustomEvent/1", "detail"],
  DOMException: [0, "", "", "name message code"],
  DecompressionStream: [1, "", "", "readable writable"],
  ErrorEvent: [1, "Event", "", "message filename lineno colno error"],
  Event: [1, "", "composedPath/0 stopPropagation/0 stopImmediatePropagation/0 preventDefault/0 initEvent/1",
    "type target srcElement currentTarget eventPhase bubbles cancelable defaultPrevented composed timeStamp", "cancelBubble returnValue"],
  EventSource: [1, "EventTarget", "close/0", "url withCredentials readyState", "onopen onmessage onerror"],
  EventTarget: [0, "", "addEventListener/2 removeEventListener/2 dispatchEvent/1"],
  File: [2, "Blob", "", "name lastModified"],
  FixedLengthStream: [1, "IdentityTransformStream", ""],
  FormData: [0, "", "append/2 delete/1 get/1 getAll/1 has/1 set/2 entries/0 keys/0 values/0 forEach/1"],
  HTMLRewriter: [0, "", "on/2 onDocument/1 transform/1"],
  Headers: [0, "", "append/2 delete/1 get/1 getSetCookie/0 has/1 set/2 entries/0 keys/0 values/0 forEach/1"],
  IdentityTransformStream: [0, "TransformStream", ""],
  MessageChannel: [0, "", "", "port1 port2"],
  MessageEvent: [1, "Event", "initMessageEvent/1", "data origin lastEventId source ports"],
  MessagePort: [0, "EventTarget", "postMessage/1 start/0 close/0", "", "onmessage onmessageerror onclose"],
  Navigator: [0, "", "", "userAgent language languages hardwareConcurrency"],
  Performance: [0, "EventTarget", "now/0 toJSON/0 getEntries/0 getEntriesByType/1 getEntriesByName/1 mark/1 clearMarks/0 measure/1 clearMeasures/0", "timeOrigin"],
  PerformanceEntry: [0, "", "toJSON/0", "name entryType startTime duration"],
  PerformanceMark: [1, "PerformanceEntry", "", "detail"],
  PerformanceMeasure: [0, "PerformanceEntry", "", "detail"],
  PerformanceObserver: [1, "", "observe/0 disconnect/0 takeRecords/0"],
  PerformanceObserverEntryList: [0, "", "getEntries/0 getEntriesByType/1 getEntriesByName/1"],
  PromiseRejectionEvent: [2, "Event", "", "promise reason"],
  QuotaExceededError: [0, "DOMException", "", "quota requested"],
  ReadableByteStreamController: [0, "", "close/0 enqueue/1 error/0", "byobRequest desiredSize"],
  ReadableStream: [0, "", "cancel/0 getReader/0 pipeThrough/1 pipeTo/1 tee/0 values/0", "locked", "", "from/1"],
  ReadableStreamBYOBReader: [1, "", "read/1 releaseLock/0 cancel/0", "closed"],
  ReadableStreamBYOBRequest: [0, "", "respond/1 respondWithNewView/1", "view"],
  ReadableStreamDefaultController: [0, "", "close/0 enqueue/0 error/0", "desiredSize"],
  ReadableStreamDefaultReader: [1, "", "read/0 releaseLock/0 cancel/0", "closed"],
  Request: [1, "", "clone/0 arrayBuffer/0 blob/0 bytes/0 formData/0 json/0 text/0", "method url headers destination referrer referrerPolicy mode " +
    "credentials cache redirect integrity keepalive isReloadNavigation isHistoryNavigation signal duplex cf body bodyUsed"],
  Response: [0, "", "clone/0 arrayBuffer/0 blob/0 bytes/0 formData/0 json/0 text/0", "type url redirected status ok statusText headers webSocket cf body bodyUsed", "",
    "error/0 redirect/1 json/1"],
  Scheduler: [0, "", "wait/1"],
  SubtleCrypto: [0, "", "encrypt/3 decrypt/3 sign/3 verify/4 digest/2 generateKey/3 deriveKey/5 deriveBits/2 importKey/5 exportKey/2 wrapKey/4 unwrapKey/7 timingSafeEqual/2"],
  TextDecoder: [0, "", "decode/0", "encoding fatal ignoreBOM"],
  TextDecoderStream: [0, "", "", "encoding fatal ignoreBOM readable writable"],
  TextEncoder: [0, "", "encode/0 encodeInto/2", "encoding"],
  TextEncoderStream: [0, "", "", "encoding readable writable"],
  TransformStream: [0, "", "", "readable writable"],
  TransformStreamDefaultController: [0, "", "enqueue/0 error/0 terminate/0", "desiredSize"],
  URL: [1, "", "toString/0 toJSON/0", "origin searchParams", "href protocol username password host hostname port pathname search hash", "canParse/1 parse/1 createObjectURL/1 revokeObjectURL/1"],
  URLPattern: [0, "", "test/0 exec/0", "protocol username password hostname port pathname search hash hasRegExpGroups"],
  URLSearchParams: [0, "", "append/2 delete/1 get/1 getAll/1 has/1 set/2 sort/0 toString/0 entries/0 keys/0 values/0 forEach/1", "size"],
  WebSocket: [1, "EventTarget", "accept/0 close/0 send/1", "url readyState bufferedAmount extensions protocol", "onopen onerror onclose onmessage binaryType"],
  WebSocketPair: [0, "", "", ""],
  WritableStream: [0, "", "abort/0 close/0 getWriter/0", "locked"],
  WritableStreamDefaultController: [0, "", "error/0", "signal"],
  WritableStreamDefaultWriter: [1, "", "abort/0 close/0 releaseLock/0 write/0", "closed desiredSize ready"],
};

const words = (text = "") => text.split(" ").filter((word) => word !== "");

const nested = { Crypto: "DigestStream" }; // classes that are members

const staticAttributes = { PerformanceObserver: "supportedEntryTypes" };

// What gives promises: its TypeErrors are rejections, whatever it is called on.
const promising = words("Cache.match Cache.put Cache.delete Cache.add Cache.addAll Cache.keys Cache.matchAll " +
  "CacheStorage.open CacheStorage.delete CacheStorage.has CacheStorage.keys CacheStorage.match Blob.text Blob.arrayBuffer Blob.bytes ReadableStream.cancel ReadableStream.pipeTo ReadableStreamBYOBReader.read " +
  "ReadableStreamBYOBReader.cancel ReadableStreamBYOBReader.closed ReadableStreamDefaultReader.read ReadableStreamDefaultReader.cancel " +
  "ReadableStreamDefaultReader.closed WritableStream.abort WritableStream.close WritableStreamDefaultWriter.abort WritableStreamDefaultWriter.close " +
  "WritableStreamDefaultWriter.write WritableStreamDefaultWriter.closed WritableStreamDefaultWriter.ready Scheduler.wait SubtleCrypto.encrypt " +
  "SubtleCrypto.decrypt SubtleCrypto.sign SubtleCrypto.verify SubtleCrypto.digest SubtleCrypto.generateKey SubtleCrypto.deriveKey SubtleCrypto.deriveBits " +
  "SubtleCrypto.importKey SubtleCrypto.exportKey SubtleCrypto.wrapKey SubtleCrypto.unwrapKey Request.arrayBuffer Request.blob Request.bytes " +
  "Request.formData Request.json Request.text Response.arrayBuffer Response.blob Response.bytes Response.formData Response.json Response.text");

const iterators = { URLSearchParams: Symbol.iterator, Headers: Symbol.iterator, FormData: Symbol.iterator, ReadableStream: Symbol.asyncIterator, WebSocketPair: Symbol.iterator };
const descriptor = Object.getOwnPropertyDescriptor;
const isConstant = (key) => /^[A-Z_]+$/.test(key);

// refuses: a member called on what is no such object throws a TypeError, or rejects with one. Nothing at all stands for the
// global object, which is an EventTarget.
async function refuses(fn, args, what) {
  for (const self of what.startsWith("EventTarget.") ? [{}, 5] : [{}, 5, null, undefined]) {
    let result;
    try {
      result = fn.apply(self, args);
    } catch (error) {
      assert.equal(error.constructor, TypeError, what);
      assert.ok(!promising.includes(what), `${what} throws and does not reject on ${self}`);
      continue;
    }
    assert.ok(result instanceof Promise, `${what} on another object`);
    await assert.rejects(result, TypeError, what);
  }
}

async function checkOperation(holder, key, length, what) {
  const d = descriptor(holder, key);
  assert.deepEqual([typeof d.value, d.writable, d.enumerable, d.configurable, d.value.name, d.value.length], ["function", true, true, true, key, length], what);
  if (typeof holder !== "function") await refuses(d.value, Array(length).fill(undefined), what);
}

async function checkAttribute(proto, key, writable, what) {
  const d = descriptor(proto, key);
  assert.deepEqual([d.enumerable, d.configurable, d.get.name, d.get.length], [true, true, `get ${key}`, 0], what);
  await refuses(d.get, [], what);
  assert.equal(d.set !== undefined, writable, `${what} can be set`);
  if (!writable) return;
  assert.deepEqual([d.set.name, d.set.length], [`set ${key}`, 1], what);
  assert.throws(() => d.set.call({}, "x"), TypeError, what);
}

for (const [name, [length, parent, operations, readonly, attributes, statics]] of Object.entries(interfaces)) {
  test(name, async () => {
    const Class = globalThis[name];
    const { prototype } = Class;
    assert.deepEqual(descriptor(Class, "length"), { value: length, writable: false, enumerable: false, configurable: true });
    assert.deepEqual(descriptor(Class, "name"), { value: name, writable: false, enumerable: false, configurable: true });
    assert.equal(Object.getPrototypeOf(Class), parent === "" ? Function.prototype : globalThis[parent]);
    const above = name === "DOMException" ? Error.prototype : parent === "" ? Object.prototype : globalThis[parent].prototype;
    assert.equal(Object.getPrototypeOf(prototype), above);
    assert.throws(() => Class(), TypeError);

    const known = ["constructor"];
    const made = descriptor(prototype, "constructor");
    assert.deepEqual([made.value === Class, made.writable, made.enumerable, made.configurable], [true, true, false, true]);
    for (const [key, n] of words(operations).map((word) => word.split("/"))) {
      known.push(key);
      await checkOperation(prototype, key, Number(n), `${name}.${key}`);
    }
    for (const key of [...words(readonly), ...words(attributes)]) {
      known.push(key);
      await checkAttribute(prototype, key, words(attributes).includes(key), `${name}.${key}`);
    }
    known.push(...words(nested[name]));
    assert.deepEqual(Object.getOwnPropertyNames(prototype).filter((key) => !known.includes(key) && !isConstant(key)), []);

    const ofClass = ["length", "name", "prototype", ...words(staticAttributes[name])];
    for (const [key, n] of words(statics).map((word) => word.split("/"))) {
      ofClass.push(key);
      await checkOperation(Class, key, Number(n), `static ${name}.${key}`);
    }
    assert.deepEqual(Object.getOwnPropertyNames(Class).filter((key) => !ofClass.includes(key) && !isConstant(key)), []);
    assert.deepEqual(Object.getOwnPropertySymbols(Class), []);

    const symbols = [Symbol.toStringTag];
    if (name in iterators) {
      symbols.push(iterators[name]);
      const d = descriptor(prototype, iterators[name]);
      assert.deepEqual([d.value === (prototype.entries ?? prototype.values ?? d.value), d.writable, d.enumerable, d.configurable], [true, true, false, true]);
    }
    assert.deepEqual(Object.getOwnPropertySymbols(prototype).filter((s) => !symbols.includes(s)), []);
  });
}

test("no interface is left out", () => {
  const ours = Object.getOwnPropertyNames(globalThis).filter((name) => {
    const { value } = descriptor(globalThis, name);
    return typeof value === "function" && value.prototype !== undefined && descriptor(value.prototype, Symbol.toStringTag)?.value === name;
  });
  const ecmascript = ["ArrayBuffer", "AsyncDisposableStack", "BigInt", "DataView", "DisposableStack", "FinalizationRegistry", "Map", "Promise", "Set", "Symbol",
    "WeakMap", "WeakRef", "WeakSet"];
  assert.deepEqual(ours.filter((name) => !(name in interfaces) && !ecmascript.includes(name)), []);
});
