// runtime/features.js runs the files of a feature when one of the feature's names is first used. Most events use few
// features, and without the others an isolate and a context are made in 60 % of the time (docs/development/adr/0041).
//
// order.txt has the files of each feature. They run in the worker's context, perhaps after its code has changed the
// prototypes of all objects. So what they do at once obeys the rule that otherwise counts for functions: primordials
// only, and no iteration.

"use strict";

const {
  ObjectSetPrototypeOf, Proxy, ReflectDeleteProperty, ReflectGetOwnPropertyDescriptor, ReflectOwnKeys, TypeError, globalThis,
  sealedProto,
} = primordials;
const { lazy, lazyValues, run } = host;

// Each feature has these lists of names:
//   interfaces, operations: on the global object, by defineInterface and defineOperation
//   attributes, replaceable: on the global object, with the value of the same name in internal
//   properties: of another object, for which a file calls host.lazy; the feature's file calls provide
//   names: in internal, for files outside the feature, which read them when they need them
//   tests: functions in internal that tell whether a value is one of the feature's objects. Before the first use none is.
const table = {
  __proto__: null,
  async_context: { interfaces: ["AsyncContext", "AsyncLocalStorage"], names: ["AsyncLocalStorage"] },
  base64: { operations: ["atob", "btoa"], names: ["fromBase64url", "fromForgivingBase64", "toBase64", "toBase64url"] },
  batch: { names: ["newBatch", "newMessageBatch", "readFailures"] },
  blob_url: { names: ["blobOf", "blobResponse", "createBlobURL", "revokeBlobURL"] },
  "bindings/caches": { interfaces: ["Cache", "CacheStorage"], replaceable: ["caches"], names: ["caches"] },
  "bindings/queues": { names: ["queued"] },
  "bindings/services": { names: ["encodeResult", "newExport", "remoteError"] },
  clone: {
    operations: ["structuredClone"],
    names: ["cloneFor", "deserialize", "serialize", "structuredClone", "toObjects", "toTransfer"],
  },
  compression: { interfaces: ["CompressionStream", "DecompressionStream"] },
  crypto: {
    interfaces: ["CryptoKey", "SubtleCrypto"],
    names: ["beginWork", "cloneCryptoKey", "crypto", "worked"],
    tests: ["isCryptoKey"],
  },
  data_url: { names: ["dataResponse"] },
  digest_stream: { properties: ["DigestStream"] },
  event_types: {
    interfaces: ["CloseEvent", "CustomEvent", "ErrorEvent", "PromiseRejectionEvent"],
    names: ["CloseEvent", "ErrorEvent", "PromiseRejectionEvent", "errorEventParts"],
  },
  eventsource: { interfaces: ["EventSource"] },
  fetch: {
    operations: ["fetch"],
    names: ["Through", "checked", "failureCode", "fetch", "fetchChunk", "fetchFailed", "fetchRedirect", "fetchResponse", "fetchWhole",
      "uploadWanted", "withoutFragment"],
  },
  forms: {
    interfaces: ["Blob", "File", "FormData"],
    names: ["blobBytes", "blobType", "blobView", "cleanType", "extractMimeType", "fileModified", "fileName", "mimeParam", "newBlob", "newFile",
      "parseFormBody", "parseMimeType", "serializeMimeType", "serializeMultipart"],
    tests: ["isBlob", "isFile", "isFormData"],
  },
  inspect: { names: ["inspect", "inspectBrief", "inspectParts", "inspectWith"] },
  integrity: { names: ["integrityOf", "matchesIntegrity"] },
  listeners: { names: ["newFetchEvent", "newScheduledEvent", "newTaskEvent"] },
  lookup: { names: ["cancelLookups", "lookUp", "lookedUp"] },
  messaging: {
    interfaces: ["BroadcastChannel", "MessageChannel", "MessageEvent", "MessagePort"],
    names: ["here", "isPortDetached", "movePort", "newMessageEvent", "newPort", "newWire"],
    tests: ["isMessagePort"],
  },
  node: { names: ["node", "nodeExports"] },
  "node/buffer": { properties: ["Buffer"] },
  "node/process": { properties: ["process"] },
  navigator: {
    interfaces: ["Navigator", "Scheduler"],
    attributes: ["navigator"],
    replaceable: ["scheduler"],
    names: ["navigator", "scheduler"],
  },
  pattern: { interfaces: ["URLPattern"] },
  performance: {
    interfaces: ["Performance", "PerformanceEntry", "PerformanceMark", "PerformanceMeasure", "PerformanceObserver",
      "PerformanceObserverEntryList"],
    replaceable: ["performance"],
    names: ["performance"],
  },
  rewriter: { interfaces: ["HTMLRewriter"] },
  routes: { names: ["matchRoute", "noRoute", "readRoutes"] },
  sender: { names: ["grantCredit", "newSender"] },
  sockets: { names: ["socketsExports"] },
  streams: {
    interfaces: ["ByteLengthQueuingStrategy", "CountQueuingStrategy", "FixedLengthStream", "IdentityTransformStream",
      "ReadableByteStreamController", "ReadableStream", "ReadableStreamBYOBReader", "ReadableStreamBYOBRequest",
      "ReadableStreamDefaultController", "ReadableStreamDefaultReader", "TextDecoderStream", "TextEncoderStream", "TransformStream",
      "TransformStreamDefaultController", "WritableStream", "WritableStreamDefaultController", "WritableStreamDefaultWriter"],
    names: ["WritableStream", "cancelStream", "fixedLengthOf", "gathered", "isStreamDisturbed", "isStreamLocked", "newFeed",
      "newTransferredTransform", "proxyStream", "readAll", "readOn", "readableHandle", "readableState", "setFixedLength", "streamOf", "streamOfBytes", "streamOfIterable", "streams", "takeSource",
      "teeForClone", "transformSides", "usedStream", "writableHandle", "writableState"],
    tests: ["isReadableStream", "isTransformStream", "isWritableStream"],
  },
  table: { names: ["inspectTable"] },
  tasks: { names: ["TaskData", "defineTaskMembers", "delayOf", "newScheduledInfo", "newTaskInfo", "sourceOf"] },
  tcp: { names: ["TCPHandler", "TLSOptions", "openTCP", "tcpClosed", "tcpData", "tcpOpened", "tcpSent", "tlsVerify",
    "tlsVersions"] },
  text: {
    interfaces: ["TextDecoder", "TextEncoder"],
    names: ["asciiSpace", "decodeWith", "fromUnits"],
  },
  transfer: { names: ["moveStream", "prepareStream"] },
  upload: { names: ["newUpload"] },
  websocket: {
    interfaces: ["WebSocket", "WebSocketPair"],
    names: ["giveSocket", "socketClosed", "socketMessage", "socketOpened", "socketSent"],
    tests: ["isWebSocket"],
  },
  wasm: { properties: ["WebAssembly"], names: ["wasmExports"] },
};

const ABSENT = 0;
const RUNNING = 1;
const PRESENT = 2;

class Feature {
  name;
  names; // those in internal that others use
  state = ABSENT;
  properties = null; // the values of properties that scripts see, by name
  constructor(name, names) {
    this.name = name;
    this.names = names;
  }
}
sealedProto(Feature);

const never = () => false;

let started = false; // the first call of Go has come

// use runs the files of a feature, the first time. If that throws, because no stack or no memory is left, internal loses
// the names, and the next use begins again.
function use(feature) {
  if (feature.state === PRESENT) return;
  if (feature.state === RUNNING || !started) throw new TypeError(`the feature ${feature.name} cannot be used yet`);
  feature.state = RUNNING;
  feature.properties = { __proto__: null };
  try {
    run(feature.name, host, internal, primordials);
    feature.state = PRESENT;
  } finally {
    if (feature.state !== PRESENT) {
      const { names } = feature;
      for (let i = 0; i < names.length; i++) {
        if (isTest[names[i]]) internal[names[i]] = never;
        else ReflectDeleteProperty(internal, names[i]);
      }
      feature.state = ABSENT;
    }
  }
}

const byName = { __proto__: null }; // the features of names in internal
const isTest = { __proto__: null }; // has the names that are tests

// What internal does not have yet, its prototype looks for.
const missing = {
  __proto__: null,
  get(_, name) {
    const feature = byName[name];
    if (feature === undefined) return undefined;
    use(feature);
    return ReflectGetOwnPropertyDescriptor(internal, name)?.value;
  },
};

const byProperty = { __proto__: null }; // the features of properties that scripts see

// provide takes the value of such a property. It returns false for other names.
internal.provide = (name, value) => {
  const feature = byProperty[name];
  if (feature === undefined) return false;
  feature.properties[name] = value;
  return true;
};

lazyValues((name) => {
  const feature = byProperty[name];
  use(feature);
  return feature.properties[name];
});

// bindingKinds has a function for each kind of binding that is no variable. It makes the value in env from the
// binding's name there and its value in the manifest.
internal.bindingKinds = { __proto__: null };

const byKind = { __proto__: null }; // the features of kinds of bindings

// bindingKind returns the function that makes bindings of this kind. Each file of bindings/ is a feature.
internal.bindingKind = (kind) => {
  use(byKind[kind] ??= new Feature(`bindings/${kind}`, []));
  return internal.bindingKinds[kind];
};

// nodeModules has the modules of Node by name. A module that has other files than node/NAME.js is a feature of these.
internal.nodeModules = { __proto__: null };

const byModule = { __proto__: null }; // the features of modules of Node

// nodeModule returns the value of a module of Node, which isolates/js/node has.
internal.nodeModule = (name) => {
  use(byModule[name] ??= new Feature(`node/${name}`, []));
  return internal.nodeModules[name];
};

// startFeatures is called before the first use.
internal.startFeatures = () => {
  started = true;
  ObjectSetPrototypeOf(internal, new Proxy({ __proto__: null }, missing));
};

for (const name of ReflectOwnKeys(table)) {
  const {
    interfaces = [], operations = [], attributes = [], replaceable = [], properties = [], names = [], tests = [],
  } = table[name];
  const feature = new Feature(name, [...names, ...tests]);
  if (name.startsWith("bindings/")) byKind[name.slice("bindings/".length)] = feature;
  if (name.startsWith("node/")) byModule[name.slice("node/".length)] = feature;
  for (const n of names) byName[n] = feature;
  for (const n of tests) isTest[n] = internal[n] = never;
  for (const n of [...interfaces, ...operations, ...properties]) byProperty[n] = feature;
  for (const n of interfaces) lazy(globalThis, n, false);
  for (const n of operations) lazy(globalThis, n, true);
  for (const n of attributes) internal.defineAttribute(n, () => internal[n]);
  for (const n of replaceable) internal.defineAttribute(n, () => internal[n], true);
}
