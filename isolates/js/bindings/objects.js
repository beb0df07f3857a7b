// bindings/objects.js is Cloudflare's R2Bucket, with the names that its classes have in workerd. internal/env/bindings has the Go half.

"use strict";

const {
  ArrayIsArray, Date, DatePrototypeGetTime, DatePrototypeToUTCString, Error, JSONParse, List, NumberIsFinite, NumberIsInteger, ObjectDefineProperty,
  ObjectFreeze, ObjectKeys, ObjectPrototypeHasOwnProperty, RangeError, StringPrototypeCharCodeAt, StringPrototypeEndsWith,
  StringPrototypeStartsWith, TypeError, TypedArrayPrototypeGetBuffer, Uint8Array, lengthOf,
} = primordials;
const {
  TOKEN, appendArray, bodySize, bodyStream, callBinding, consume, defineInterface, getHeader, illegalConstructor, illegalInvocation, isBodyUsed, isBufferSource,
  isHeaders, isObject, newCapability, requireArguments, setHeader, toLong, toRecord, toSequence, toUSVString, viewBytes,
} = internal;
const { encode } = host;

const MAX_OBJECT = 25 * 1024 * 1024; // bytes; internal/env/bindings
const MAX_DELETED = 1000; // keys of one delete()
const FROM_HEADER = "h"; // before a value that Go parses as that of an HTTP header

// The kinds of internal.consume.
const TEXT = 0;
const JSON_VALUE = 1;
const BYTES = 2;
const BUFFER = 3;

// httpFields are the fields of httpMetadata with their headers, in the order in which Go takes them. cacheExpiry, a
// Date, follows them.
const httpFields = ["contentType", "contentLanguage", "contentDisposition", "contentEncoding", "cacheControl"];
const httpHeaders = ["content-type", "content-language", "content-disposition", "content-encoding", "cache-control"];

const sumNames = ["md5", "sha1", "sha256", "sha384", "sha512"];
const sumBytes = [16, 20, 32, 48, 64];

class Checksums {
  #sums;
  constructor(token = undefined, sums) {
    if (token !== TOKEN) throw illegalConstructor();
    this.#sums = sums;
    for (let i = sumNames.length - 1; i >= 0; i--) {
      const hex = sums[sumNames[i]];
      readOnly(this, sumNames[i], hex === undefined ? undefined : TypedArrayPrototypeGetBuffer(fromHex(hex)));
    }
  }
  toJSON() {
    if (!isObject(this) || !(#sums in this)) throw illegalInvocation("Checksums");
    const shown = {};
    for (let i = 0; i < sumNames.length; i++) define(shown, sumNames[i], this.#sums[sumNames[i]]);
    return shown;
  }
}
defineInterface(Checksums, "Checksums", true);

class HeadResult {
  #http;
  constructor(token = undefined, text = undefined) {
    if (token !== TOKEN) throw illegalConstructor();
    const o = JSONParse(text);
    const http = own(o, "http") ?? { __proto__: null };
    const sums = own(o, "sums");
    this.#http = http;
    readOnly(this, "ssecKeyMd5", undefined);
    readOnly(this, "storageClass", "Standard");
    readOnly(this, "range", own(o, "range"));
    readOnly(this, "customMetadata", own(o, "custom") ?? {});
    readOnly(this, "httpMetadata", shownHTTP(http));
    readOnly(this, "uploaded", new Date(o.uploaded));
    readOnly(this, "checksums", new Checksums(TOKEN, { __proto__: null, ...sums }));
    readOnly(this, "httpEtag", `"${o.etag}"`);
    readOnly(this, "etag", o.etag);
    readOnly(this, "size", o.size);
    readOnly(this, "version", o.version);
    readOnly(this, "key", o.key);
  }
  static {
    internal.contentTypeOfObject = (value) => own(value.#http, "contentType") ?? "";
  }
  writeHttpMetadata(headers) {
    if (!isObject(this) || !(#http in this)) throw illegalInvocation("R2Object");
    requireArguments(arguments.length, 1, "R2Object.writeHttpMetadata");
    if (!isHeaders(headers)) throw new TypeError("R2Object.writeHttpMetadata: the argument is not a Headers");
    for (let i = 0; i < httpFields.length; i++) {
      const value = own(this.#http, httpFields[i]);
      if (value !== undefined) setHeader(headers, httpHeaders[i], value);
    }
    const expires = own(this.#http, "cacheExpiry");
    if (expires !== undefined) setHeader(headers, "expires", DatePrototypeToUTCString(new Date(+expires)));
  }
}
defineInterface(HeadResult, "HeadResult", true);

class GetResult extends HeadResult {
  #body;
  constructor(token = undefined, text = undefined, bytes = undefined) {
    super(token, text);
    const kept = internal.isKept(bytes);
    this.#body = { __proto__: null, source: kept ? null : bytes, stream: kept ? internal.streamOf(bytes) : null, used: false, shared: false };
  }
  get body() { return bodyStream(bodyOf(this)); }
  get bodyUsed() { return isBodyUsed(bodyOf(this)); }
  async arrayBuffer() { return await consume(bodyOf(this), BUFFER); }
  async bytes() { return await consume(bodyOf(this), BYTES); }
  async text() { return await consume(bodyOf(this), TEXT); }
  async json() { return await consume(bodyOf(this), JSON_VALUE); }
  async blob() {
    const bytes = await consume(bodyOf(this), BYTES);
    return internal.newBlob(bytes, internal.cleanType(internal.contentTypeOfObject(this)));
  }
  static {
    internal.objectBody = (value) => {
      if (!isObject(value) || !(#body in value)) throw illegalInvocation("R2ObjectBody");
      return value.#body;
    };
  }
}
defineInterface(GetResult, "GetResult", true);
const bodyOf = internal.objectBody;

class R2Bucket {
  #name;
  constructor(token = undefined, name) {
    if (token !== TOKEN) throw illegalConstructor();
    this.#name = name;
  }
  async head(key) {
    if (!isObject(this) || !(#name in this)) throw illegalInvocation("R2Bucket");
    requireArguments(arguments.length, 1, "R2Bucket.head");
    return await callBinding("objects", this.#name, "head", listOf(toUSVString(key)), "", toResult);
  }
  async get(key, options = undefined) {
    if (!isObject(this) || !(#name in this)) throw illegalInvocation("R2Bucket");
    requireArguments(arguments.length, 1, "R2Bucket.get");
    const texts = listOf(toUSVString(key));
    const init = toOptions(options, "R2Bucket.get");
    append(texts, init === undefined ? "" : toRange(init.range));
    appendCondition(texts, init === undefined ? undefined : init.onlyIf);
    return await callBinding("objects", this.#name, "get", texts, "", toResult, true);
  }
  async put(key, value, options = undefined) {
    if (!isObject(this) || !(#name in this)) throw illegalInvocation("R2Bucket");
    requireArguments(arguments.length, 2, "R2Bucket.put");
    const texts = listOf(toUSVString(key));
    const init = toOptions(options, "R2Bucket.put");
    appendSum(texts, init);
    appendCondition(texts, init === undefined ? undefined : init.onlyIf);
    appendHTTP(texts, init === undefined ? undefined : init.httpMetadata);
    const custom = init === undefined ? undefined : init.customMetadata;
    if (custom !== undefined) {
      const flat = toRecord(custom, toUSVString, toUSVString, "R2Bucket.put: customMetadata");
      for (let i = 0; i < flat.length; i++) append(texts, flat[i]);
    }
    const body = await toBody(value);
    if (bodySize(body) > MAX_OBJECT) {
      throw new Error(`put: Your proposed upload of ${bodySize(body)} bytes exceeds the maximum allowed object size of ${MAX_OBJECT}. (100100)`);
    }
    return await callBinding("objects", this.#name, "put", texts, body, toResult);
  }
  async delete(keys) {
    if (!isObject(this) || !(#name in this)) throw illegalInvocation("R2Bucket");
    requireArguments(arguments.length, 1, "R2Bucket.delete");
    const texts = new List();
    if (ArrayIsArray(keys)) {
      const count = keys.length;
      if (count > MAX_DELETED) throw new Error(`delete: at most ${MAX_DELETED} keys can be deleted at once`);
      for (let i = 0; i < count; i++) append(texts, toUSVString(keys[i]));
    } else append(texts, toUSVString(keys));
    return await callBinding("objects", this.#name, "delete", texts, "", () => undefined);
  }
  async list(options = undefined) {
    if (!isObject(this) || !(#name in this)) throw illegalInvocation("R2Bucket");
    const init = toOptions(options, "R2Bucket.list") ?? { __proto__: null };
    const texts = listOf(toText(init.prefix, "prefix"));
    const limit = init.limit === undefined ? -1 : toLong(init.limit);
    append(texts, limit < 0 ? "" : `${limit}`);
    append(texts, toText(init.cursor, "cursor"));
    append(texts, toText(init.delimiter, "delimiter"));
    append(texts, toText(init.startAfter, "startAfter"));
    let http = "";
    let custom = "";
    const { include } = init;
    if (include !== undefined) {
      if (!isObject(include)) throw new TypeError("R2Bucket.list: include is not an array");
      const names = toSequence(include, toUSVString, "R2Bucket.list: include");
      for (let i = 0; i < names.length; i++) {
        if (names[i] === "httpMetadata") http = "1";
        else if (names[i] === "customMetadata") custom = "1";
        else throw new RangeError(`Unsupported include value ${names[i]}`);
      }
    }
    append(texts, http);
    append(texts, custom);
    return await callBinding("objects", this.#name, "list", texts, "", toPage);
  }
  async createMultipartUpload() {
    if (!isObject(this) || !(#name in this)) throw illegalInvocation("R2Bucket");
    throw noMultipart();
  }
  resumeMultipartUpload() {
    if (!isObject(this) || !(#name in this)) throw illegalInvocation("R2Bucket");
    throw noMultipart();
  }
}
defineInterface(R2Bucket, "R2Bucket", true);
internal.bindingKinds.objects = (name) => ObjectFreeze(new R2Bucket(TOKEN, name));

function noMultipart() {
  return new TypeError(`there are no multipart uploads: put() takes objects of up to ${MAX_OBJECT} bytes`);
}

// ---- arguments ----

function append(list, text) {
  list[list.length] = text;
}

function listOf(text) {
  const list = new List();
  list[0] = text;
  return list;
}

function toOptions(value, what) {
  if (value === undefined || value === null) return undefined;
  if (!isObject(value)) throw new TypeError(`${what}: the options are not an object`);
  return value;
}

function toText(value, what) {
  if (value === undefined) return "";
  if (value === null) throw new TypeError(`${what} is null, not a string`);
  return toUSVString(value);
}

// toTime returns the milliseconds of a Date, or of a number.
function toTime(value, what) {
  const ms = typeof value === "number" ? value : isObject(value) ? DatePrototypeGetTime(value) : NaN;
  if (!NumberIsFinite(ms)) throw new TypeError(`${what} is not a Date`);
  return `${ms < 0 ? -internal.toUnsignedLongLong(-ms) : internal.toUnsignedLongLong(ms)}`;
}

// appendCondition adds onlyIf: two texts of etags, two of times, and "1" if seconds are the unit of these.
function appendCondition(texts, value) {
  if (value === undefined) {
    for (let i = 0; i < 5; i++) append(texts, "");
    return;
  }
  if (!isObject(value)) throw new TypeError("onlyIf is neither an object nor a Headers");
  if (isHeaders(value)) {
    append(texts, ofHeader(value, "if-match"));
    append(texts, ofHeader(value, "if-none-match"));
    append(texts, ofHeader(value, "if-unmodified-since"));
    append(texts, ofHeader(value, "if-modified-since"));
    append(texts, "1");
    return;
  }
  const { etagMatches, etagDoesNotMatch, uploadedBefore, uploadedAfter, secondsGranularity } = value;
  append(texts, toEtag(etagMatches, "etagMatches"));
  append(texts, toEtag(etagDoesNotMatch, "etagDoesNotMatch"));
  append(texts, uploadedBefore === undefined ? "" : toTime(uploadedBefore, "uploadedBefore"));
  append(texts, uploadedAfter === undefined ? "" : toTime(uploadedAfter, "uploadedAfter"));
  append(texts, secondsGranularity ? "1" : "");
}

function ofHeader(headers, name) {
  const value = getHeader(headers, name);
  return value === null ? "" : FROM_HEADER + value;
}

function toEtag(value, what) {
  if (value === undefined) return "";
  if (value === null || isObject(value)) throw new TypeError(`${what} is not a string`);
  const etag = toUSVString(value);
  if (etag.length > 1 && StringPrototypeStartsWith(etag, '"') && StringPrototypeEndsWith(etag, '"')) {
    throw new TypeError(`${what} is wrapped in quotes: it is the etag of an object, not its httpEtag`);
  }
  return etag === "*" ? etag : `=${etag}`;
}

// toRange returns a range as "OFFSET,LENGTH", as "-SUFFIX", or as the value of a header.
function toRange(value) {
  if (value === undefined) return "";
  if (!isObject(value)) throw new TypeError("range is neither an object nor a Headers");
  if (isHeaders(value)) return ofHeader(value, "range");
  const { offset, length, suffix } = value;
  if (suffix !== undefined) {
    if (offset !== undefined || length !== undefined) throw new TypeError("a range with suffix has neither offset nor length");
    return `-${toCount(suffix, "Suffix")}`;
  }
  const from = offset === undefined ? "" : toCount(offset, "Starting offset");
  return `${from},${length === undefined ? "" : toCount(length, "Length")}`;
}

function toCount(value, what) {
  const n = +value;
  if (!(n >= 0)) throw new RangeError(`Invalid range. ${what} (${n}) must be greater than or equal to 0.`);
  if (!NumberIsInteger(n)) throw new RangeError(`Invalid range. ${what} (${n}) must be an integer, not floating point.`);
  return `${internal.toUnsignedLongLong(n)}`;
}

// appendSum adds the name of a checksum, and its value in hex.
function appendSum(texts, init) {
  let name = "";
  let hex = "";
  for (let i = 0; init !== undefined && i < sumNames.length; i++) {
    const value = init[sumNames[i]];
    if (value === undefined) continue;
    if (name !== "") throw new TypeError("R2Bucket.put: more than one checksum; R2 takes one");
    name = sumNames[i];
    hex = isBufferSource(value) ? toHex(viewBytes(value)) : toUSVString(value);
    if (hex.length !== 2 * sumBytes[i] || !isHex(hex)) throw new TypeError(`R2Bucket.put: ${name} does not have ${sumBytes[i]} bytes, or is not hexadecimal`);
  }
  append(texts, name);
  append(texts, hex);
  if (init !== undefined && init.ssecKey !== undefined) throw new TypeError("R2Bucket.put: keys of customers (ssecKey) are not supported");
}

function appendHTTP(texts, value) {
  const count = httpFields.length;
  if (value === undefined) {
    for (let i = 0; i <= count; i++) append(texts, "");
    return;
  }
  if (!isObject(value)) throw new TypeError("R2Bucket.put: httpMetadata is neither an object nor a Headers");
  if (isHeaders(value)) {
    for (let i = 0; i < count; i++) append(texts, getHeader(value, httpHeaders[i]) ?? "");
    append(texts, ofHeader(value, "expires"));
    return;
  }
  for (let i = 0; i < count; i++) append(texts, toText(value[httpFields[i]], httpFields[i]));
  const { cacheExpiry } = value;
  append(texts, cacheExpiry === undefined ? "" : toTime(cacheExpiry, "cacheExpiry"));
}

// toBody returns the bytes of an object to store, or a promise of them, or of a Kept.
function toBody(value) {
  if (value === undefined || value === null) return new Uint8Array(0);
  if (typeof value === "string") return encode(toUSVString(value));
  if (isObject(value)) {
    if (isBufferSource(value)) return viewBytes(value);
    if (internal.isBlob(value)) return internal.blobView(value);
    if (internal.isReadableStream(value)) {
      const read = newCapability();
      internal.readAll(value, MAX_OBJECT, read.resolve, read.reject, true);
      return read.promise;
    }
  }
  throw new TypeError("R2Bucket.put: the value is no string, ArrayBuffer, view, Blob, ReadableStream or null");
}

// ---- results ----

function own(object, name) {
  return ObjectPrototypeHasOwnProperty(object, name) ? object[name] : undefined;
}

function toResult(texts, body) {
  if (texts.length === 0) return null;
  return texts.length === 1 ? new HeadResult(TOKEN, texts[0]) : new GetResult(TOKEN, texts[0], body ?? new Uint8Array(0));
}

// toPage makes the result of list(). texts are the cursor, the number of delimited prefixes, these, and the objects.
function toPage(texts) {
  const objects = [];
  const delimitedPrefixes = [];
  const end = 2 + +texts[1];
  for (let i = 2; i < end; i++) appendArray(delimitedPrefixes, texts[i]);
  for (let i = end; i < texts.length; i++) appendArray(objects, new HeadResult(TOKEN, texts[i]));
  const cursor = texts[0];
  return { objects, truncated: cursor !== "", cursor: cursor === "" ? undefined : cursor, delimitedPrefixes };
}

// shownHTTP is httpMetadata as handler code sees it.
function shownHTTP(http) {
  const shown = {};
  const names = ObjectKeys(http);
  for (let i = 0; i < names.length; i++) {
    define(shown, names[i], names[i] === "cacheExpiry" ? new Date(+http[names[i]]) : http[names[i]]);
  }
  return shown;
}

// define sets a property of an object for handler code, even if that has changed Object.prototype.
function define(object, name, value) {
  ObjectDefineProperty(object, name, { __proto__: null, value, writable: true, enumerable: true, configurable: true });
}

function readOnly(object, name, value) {
  ObjectDefineProperty(object, name, { __proto__: null, value, writable: false, enumerable: true, configurable: true });
}

// ---- hexadecimal ----

const digits = "0123456789abcdef";

function toHex(bytes) {
  let text = "";
  for (let i = 0; i < lengthOf(bytes); i++) text += digits[bytes[i] >> 4] + digits[bytes[i] & 15];
  return text;
}

// hexValue is the value of a digit, and -1 for anything else.
function hexValue(c) {
  if (c >= 48 && c <= 57) return c - 48;
  const lower = c | 32;
  return lower >= 97 && lower <= 102 ? lower - 87 : -1;
}

function isHex(text) {
  for (let i = 0; i < text.length; i++) {
    if (hexValue(StringPrototypeCharCodeAt(text, i)) < 0) return false;
  }
  return true;
}

function fromHex(text) {
  const bytes = new Uint8Array(text.length >> 1);
  for (let i = 0; i < lengthOf(bytes); i++) {
    bytes[i] = hexValue(StringPrototypeCharCodeAt(text, 2 * i)) * 16 + hexValue(StringPrototypeCharCodeAt(text, 2 * i + 1));
  }
  return bytes;
}
