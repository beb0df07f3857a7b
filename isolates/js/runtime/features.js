// runtime/features.js runs the files of a feature when one of the feature's names is first used. Most events use few
// features, and without the others an isolate and a context are made in half the time (docs/development/adr/0041).
//
// order.txt has the files of each feature. They run in the worker's context, perhaps after its code has changed the
// prototypes of all objects. So what they do at once obeys the rule that otherwise counts for functions: primordials
// only, and no iteration.

"use strict";

const { ObjectDefineProperty, TypeError, globalThis, sealedProto } = primordials;
const { lazy, run } = host;

// Each feature has these lists of names:
//   interfaces, operations: on the global object, by defineInterface and defineOperation
//   attributes, replaceable: on the global object, with the value of the same name in internal
//   properties: of another object, for which a file calls host.lazy; the feature's file calls provide
//   names: in internal, for files of other features
//   kinds: functions in internal that tell whether a value is one of the feature's objects. Before the first use none is.
const table = {
  __proto__: null,
  base64: { operations: ["atob", "btoa"], names: ["fromBase64url", "fromForgivingBase64", "toBase64url"] },
  batch: { names: ["newBatch", "newMessageBatch", "readFailures"] },
  blob_url: { names: ["blobOf", "blobResponse", "createBlobURL", "revokeBlobURL"] },
  "bindings/caches": { interfaces: ["Cache", "CacheStorage"], attributes: ["caches"], names: ["caches"] },
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
    kinds: ["isCryptoKey"],
  },
  data_url: { names: ["dataResponse"] },
  digest_stream: { properties: ["DigestStream"] },
  eventsource: { interfaces: ["EventSource"] },
  fetch: {
    operations: ["fetch"],
    names: ["Through", "checked", "fetch", "fetchChunk", "fetchFailed", "fetchRedirect", "fetchResponse", "fetchWhole",
      "uploadWanted", "withoutFragment"],
  },
  forms: {
    interfaces: ["Blob", "File", "FormData"],
    names: ["blobBytes", "blobType", "blobView", "cleanType", "extractMimeType", "fileModified", "fileName", "newBlob", "newFile",
      "parseFormBody", "parseMimeType", "serializeMimeType", "serializeMultipart"],
    kinds: ["isBlob", "isFile", "isFormData"],
  },
  integrity: { names: ["integrityOf", "matchesIntegrity"] },
  messaging: {
    interfaces: ["BroadcastChannel", "MessageChannel", "MessageEvent", "MessagePort"],
    names: ["here", "isPortDetached", "movePort", "newMessageEvent", "newPort", "newWire"],
    kinds: ["isMessagePort"],
  },
  pattern: { interfaces: ["URLPattern"] },
  performance: {
    interfaces: ["Performance", "PerformanceEntry", "PerformanceMark", "PerformanceMeasure", "PerformanceObserver",
      "PerformanceObserverEntryList"],
    replaceable: ["performance"],
    names: ["performance"],
  },
  routes: { names: ["matchRoute", "noRoute", "readRoutes"] },
  sender: { names: ["grantCredit", "newSender"] },
  streams: {
    interfaces: ["ByteLengthQueuingStrategy", "CountQueuingStrategy", "FixedLengthStream", "IdentityTransformStream",
      "ReadableByteStreamController", "ReadableStream", "ReadableStreamBYOBReader", "ReadableStreamBYOBRequest",
      "ReadableStreamDefaultController", "ReadableStreamDefaultReader", "TextDecoderStream", "TextEncoderStream", "TransformStream",
      "TransformStreamDefaultController", "WritableStream", "WritableStreamDefaultController", "WritableStreamDefaultWriter"],
    names: ["WritableStream", "cancelStream", "fixedLengthOf", "isStreamDisturbed", "isStreamLocked", "newFeed",
      "newTransferredTransform", "proxyStream", "readAll", "readOn", "readableHandle", "readableState", "streamOfBytes", "streams",
      "teeForClone", "transformSides", "usedStream", "writableHandle", "writableState"],
    kinds: ["isReadableStream", "isTransformStream", "isWritableStream"],
  },
  table: { names: ["inspectTable"] },
  transfer: { names: ["moveStream", "prepareStream"] },
  upload: { names: ["newUpload"] },
  websocket: {
    interfaces: ["WebSocket", "WebSocketPair"],
    names: ["giveSocket", "socketClosed", "socketMessage", "socketOpened", "socketSent"],
    kinds: ["isWebSocket"],
  },
};

const ABSENT = 0;
const RUNNING = 1;
const PRESENT = 2;

class Feature {
  name;
  names; // those that become values of internal
  state = ABSENT;
  internals = { __proto__: null }; // what the files have set in internal, by name
  properties = { __proto__: null }; // the values of properties that scripts see, by name
  constructor(name, names) {
    this.name = name;
    this.names = names;
  }
}
sealedProto(Feature);

// use runs the files of a feature, the first time. If that throws, because no stack or no memory is left, the next use
// runs them again. While they run, the feature's own files have what is set already.
function use(feature) {
  if (feature.state !== ABSENT) return;
  let done = false;
  feature.state = RUNNING;
  try {
    run(feature.name, host, internal, primordials);
    done = true;
  } finally {
    feature.state = done ? PRESENT : ABSENT;
  }
  const { internals, names } = feature;
  for (let i = 0; i < names.length; i++) {
    ObjectDefineProperty(internal, names[i],
      { __proto__: null, value: internals[names[i]], writable: true, enumerable: true, configurable: true });
  }
}

const never = () => false;

let started = false; // the first call of Go has come

// internalName makes a name of internal ask for the feature. The runtime's own start must not use one: the snapshot would
// have the feature in it, or the function `never` for good.
function internalName(name, feature, isKind) {
  ObjectDefineProperty(internal, name, {
    __proto__: null, enumerable: true, configurable: true,
    get() {
      if (!started && feature.state === ABSENT) throw new TypeError(`internal.${name} of ${feature.name} is used too early`);
      if (!isKind) use(feature);
      return feature.internals[name] ?? (isKind ? never : undefined);
    },
    set(value) { feature.internals[name] = value; },
  });
}

const owners = { __proto__: null }; // the features of properties that scripts see, by name

// provide takes the value of such a property. It returns false for other names.
internal.provide = (name, value) => {
  const feature = owners[name];
  if (feature === undefined) return false;
  feature.properties[name] = value;
  return true;
};

lazy((name) => {
  const feature = owners[name];
  use(feature);
  return feature.properties[name];
});

const bindings = { __proto__: null }; // features by the kind of binding

// bindingKind returns the function that makes bindings of this kind. Each file of bindings/ is a feature.
internal.bindingKind = (kind) => {
  use(bindings[kind] ??= new Feature(`bindings/${kind}`, []));
  return internal.bindingKinds[kind];
};

internal.startFeatures = () => { started = true; };

for (const name of primordials.ReflectOwnKeys(table)) {
  const { interfaces = [], operations = [], attributes = [], replaceable = [], properties = [], names = [], kinds = [] } = table[name];
  const feature = new Feature(name, [...names, ...kinds]);
  if (name.startsWith("bindings/")) bindings[name.slice("bindings/".length)] = feature;
  for (const n of names) internalName(n, feature, false);
  for (const n of kinds) internalName(n, feature, true);
  for (const n of [...interfaces, ...operations, ...properties]) owners[n] = feature;
  for (const n of interfaces) lazy(globalThis, n, false);
  for (const n of operations) lazy(globalThis, n, true);
  for (const n of attributes) internal.defineAttribute(n, () => internal[n]);
  for (const n of replaceable) internal.defineAttribute(n, () => internal[n], true);
}
