// bindings/kv.js is Cloudflare's KVNamespace, whose class has the name KvNamespace in workerd. internal/env/bindings has the Go half, which makes most of the errors.

"use strict";

const {
  ArrayIsArray, Error, JSONParse, JSONStringify, List, Map, MapPrototypeSet, ObjectDefineProperty, ObjectFreeze, TypeError, TypedArrayPrototypeGetBuffer,
  subarray,
} = primordials;
const {
  TOKEN, appendArray, bodySize, callBinding, defineInterface, illegalConstructor, illegalInvocation, isBufferSource, isObject, newCapability,
  requireArguments, toLong, toUSVString, viewBytes,
} = internal;
const { decode, encode } = host;

const MAX_VALUE = 512 * 1024; // bytes; internal/env/bindings
const MAX_KEYS = 100; // of one get()
const MIN_CACHE = 30; // seconds, at Cloudflare

class KvNamespace {
  #name;
  constructor(token = undefined, name) {
    if (token !== TOKEN) throw illegalConstructor();
    this.#name = name;
  }
  async get(key, options = undefined) {
    if (!isObject(this) || !(#name in this)) throw illegalInvocation("KvNamespace");
    requireArguments(arguments.length, 1, "KVNamespace.get");
    const type = toType(options);
    if (ArrayIsArray(key)) return await getMany(this.#name, key, type, false);
    return await callBinding("kv", this.#name, "get", listOf(toKey(key)), "",
      (texts, body) => texts.length === 0 ? null : toValue(body, type), type === "stream");
  }
  async getWithMetadata(key, options = undefined) {
    if (!isObject(this) || !(#name in this)) throw illegalInvocation("KvNamespace");
    requireArguments(arguments.length, 1, "KVNamespace.getWithMetadata");
    const type = toType(options);
    if (ArrayIsArray(key)) return await getMany(this.#name, key, type, true);
    return await callBinding("kv", this.#name, "get", listOf(toKey(key)), "", (texts, body) => {
      const missing = texts.length === 0;
      return { value: missing ? null : toValue(body, type), metadata: missing ? null : toMetadata(texts[0]), cacheStatus: null };
    }, type === "stream");
  }
  async put(key, value, options = undefined) {
    if (!isObject(this) || !(#name in this)) throw illegalInvocation("KvNamespace");
    requireArguments(arguments.length, 2, "KVNamespace.put");
    const texts = listOf(toKey(key));
    const init = toOptions(options, "KVNamespace.put");
    texts[1] = init === undefined || init.expirationTtl === undefined ? "" : `${toLong(init.expirationTtl)}`;
    texts[2] = init === undefined || init.expiration === undefined ? "" : `${toSeconds(init.expiration)}`;
    const metadata = init === undefined ? undefined : init.metadata;
    texts[3] = metadata === undefined ? "" : toJSON(metadata);
    const body = await toBody(value);
    if (bodySize(body) > MAX_VALUE) {
      throw new Error(`KV PUT failed: 413 Value length of ${bodySize(body)} exceeds limit of ${MAX_VALUE}.`);
    }
    return await callBinding("kv", this.#name, "put", texts, body, () => undefined);
  }
  async delete(key) {
    if (!isObject(this) || !(#name in this)) throw illegalInvocation("KvNamespace");
    requireArguments(arguments.length, 1, "KVNamespace.delete");
    return await callBinding("kv", this.#name, "delete", listOf(toKey(key)), "", () => undefined);
  }
  async list(options = undefined) {
    if (!isObject(this) || !(#name in this)) throw illegalInvocation("KvNamespace");
    const init = toOptions(options, "KVNamespace.list");
    const texts = listOf(init === undefined ? "" : toText(init.prefix));
    texts[1] = init === undefined || init.limit === undefined ? "0" : `${toLong(init.limit)}`;
    texts[2] = init === undefined ? "" : toText(init.cursor);
    return await callBinding("kv", this.#name, "list", texts, "", toPage);
  }
}
defineInterface(KvNamespace, "KvNamespace", true);
internal.bindingKinds.kv = (name) => ObjectFreeze(new KvNamespace(TOKEN, name));

function listOf(text) {
  const list = new List();
  list[0] = text;
  return list;
}

function toText(value) {
  return value === undefined || value === null ? "" : toUSVString(value);
}

function toKey(value) {
  const key = toUSVString(value);
  if (key === "") throw new TypeError("Key name cannot be empty.");
  if (key === "." || key === "..") throw new TypeError(`"${key}" is not allowed as a key name.`);
  return key;
}

function toOptions(value, what) {
  if (value === undefined || value === null) return undefined;
  if (!isObject(value)) throw new TypeError(`${what}: the options are not an object`);
  return value;
}

// toType reads the type of a value from the options of get(), or from the name of the type in place of them.
function toType(options) {
  if (options === undefined || options === null) return "text";
  if (!isObject(options)) return toUSVString(options);
  const { cacheTtl, type } = options;
  if (cacheTtl !== undefined) {
    const seconds = toLong(cacheTtl);
    if (seconds < MIN_CACHE) {
      throw new Error(`KV GET failed: 400 Invalid cache_ttl of ${seconds}. Cache TTL must be at least ${MIN_CACHE}.`);
    }
  }
  return type === undefined || type === null ? "text" : toUSVString(type);
}

function toValue(bytes, type) {
  switch (type) {
    case "text": return decode(bytes, false);
    case "json": return JSONParse(decode(bytes, false));
    case "arrayBuffer": return TypedArrayPrototypeGetBuffer(bytes);
    case "stream": return internal.streamOf(bytes);
    default: throw new TypeError('Unknown response type. Possible types are "text", "arrayBuffer", "json", and "stream".');
  }
}

// toMetadata parses the JSON text of metadata; "" is none.
function toMetadata(text) {
  return text === "" ? null : JSONParse(text);
}

function toJSON(value) {
  const text = JSONStringify(value);
  if (text === undefined) throw new TypeError("KVNamespace.put: the metadata has no JSON form");
  return text;
}

// toSeconds converts a time in seconds since 1970. Text that is no number counts as 0, as at Cloudflare.
function toSeconds(value) {
  return internal.toLongLong(value);
}

// toBody returns the bytes of a value to store, or a promise of them, or of a Kept.
function toBody(value) {
  if (!isObject(value)) return encode(toUSVString(value));
  if (isBufferSource(value)) return viewBytes(value);
  if (!internal.isReadableStream(value)) {
    throw new TypeError("KV put() accepts only strings, ArrayBuffers, ArrayBufferViews, and ReadableStreams as values.");
  }
  const read = newCapability();
  internal.readAll(value, MAX_VALUE, read.resolve, read.reject, true);
  return read.promise;
}

// getMany gets several values. The texts of the answer are, for each key, the number of bytes of its value (none for a
// key that is not there) and its metadata. The values follow each other in the body.
async function getMany(name, given, type, withMetadata) {
  if (type !== "text" && type !== "json") throw new Error(`KV GET_BULK failed: 400 "${type}" is not a valid type. Use "json" or "text"`);
  const count = given.length;
  if (count < 1) throw new Error("KV GET_BULK failed: 400 You must request a minimum of 1 key");
  if (count > MAX_KEYS) throw new Error(`KV GET_BULK failed: 400 You can request a maximum of ${MAX_KEYS} keys`);
  const keys = new List();
  for (let i = 0; i < count; i++) {
    keys[i] = toUSVString(given[i]);
    if (keys[i] === "") throw new Error("KV GET_BULK failed: 400 Key names must not be empty");
  }
  return await callBinding("kv", name, "getMany", keys, "", (texts, body) => {
    const values = new Map();
    for (let i = 0, at = 0; i < keys.length; i++) {
      const size = texts[2 * i];
      let value = null;
      if (size !== "") {
        value = toBulkValue(subarray(body, at, at + +size), type);
        at += +size;
      }
      if (withMetadata && value !== null) value = { value, metadata: toMetadata(texts[2 * i + 1]) };
      MapPrototypeSet(values, keys[i], value);
    }
    return values;
  });
}

function toBulkValue(bytes, type) {
  const text = decode(bytes, false);
  if (type === "text") return text;
  try {
    return JSONParse(text);
  } catch {
    throw new Error("KV GET_BULK failed: 400 At least one of the requested keys corresponds to a non-json value");
  }
}

// toPage makes the result of list(). texts are the cursor, and for each key its name, its expiration and its metadata.
function toPage(texts) {
  const keys = [];
  for (let i = 1; i + 2 < texts.length; i += 3) {
    const key = { name: texts[i] };
    if (texts[i + 1] !== "") define(key, "expiration", +texts[i + 1]);
    if (texts[i + 2] !== "") define(key, "metadata", JSONParse(texts[i + 2]));
    appendArray(keys, key);
  }
  const cursor = texts[0];
  return cursor === "" ? { keys, list_complete: true, cacheStatus: null } : { keys, list_complete: false, cursor, cacheStatus: null };
}

// define sets a property of an object for handler code, even if that has changed Object.prototype.
function define(object, name, value) {
  ObjectDefineProperty(object, name, { __proto__: null, value, writable: true, enumerable: true, configurable: true });
}
