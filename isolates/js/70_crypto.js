// 70_crypto.js is Web Crypto: random values, digests and HMAC, computed by Go. Other algorithms are refused with
// NotSupportedError until the platform is completed.

"use strict";

const {
  ArrayBufferIsView, List, MathCeil, NumberPrototypeToString, PromiseReject, PromiseResolve, StringPrototypeToUpperCase,
  TypeError, TypedArrayPrototypeGetBuffer, TypedArrayPrototypeGetByteLength, TypedArrayPrototypeGetTag, Uint8Array,
  lengthOf, sealedProto,
} = primordials;
const {
  DOMException, TOKEN, appendArray, askOps, copyBytes, defineGlobal, defineInterface, illegalConstructor,
  illegalInvocation, isBufferSource, isObject, requireArguments, toBufferSource, toDOMString, toEnum, toSequence,
  toUnsignedLong, viewBytes,
} = internal;
const { ask, random } = host;

// ---- algorithms ----

const hashes = ["SHA-1", "SHA-256", "SHA-384", "SHA-512"];
const blockBits = { __proto__: null, "SHA-1": 512, "SHA-256": 512, "SHA-384": 1024, "SHA-512": 1024 };
const jwkNames = { __proto__: null, "SHA-1": "HS1", "SHA-256": "HS256", "SHA-384": "HS384", "SHA-512": "HS512" };

function algorithmName(value) {
  if (!isObject(value)) return toDOMString(value);
  const { name } = value;
  if (name === undefined) throw new TypeError("the algorithm has no name");
  return toDOMString(name);
}

function notSupported(name) {
  return new DOMException(`the algorithm ${internal.inspectBrief(name)} is not supported`, "NotSupportedError");
}

function hashName(value) {
  const name = algorithmName(value);
  const upper = StringPrototypeToUpperCase(name);
  for (let i = 0; i < hashes.length; i++) if (hashes[i] === upper) return upper;
  throw notSupported(name);
}

// hmacParams reads {name: "HMAC", hash, length?}.
function hmacParams(value, needsHash) {
  const name = algorithmName(value);
  if (StringPrototypeToUpperCase(name) !== "HMAC") throw notSupported(name);
  if (!needsHash) return { __proto__: null, hash: "", length: undefined };
  const given = isObject(value) ? value.hash : undefined;
  if (given === undefined) throw new TypeError("the HMAC algorithm has no hash");
  const hash = hashName(given);
  const { length } = value;
  return { __proto__: null, hash, length: length === undefined ? undefined : toUnsignedLong(length, "enforce", "length") };
}

// ---- keys ----

class KeyState {
  type;
  extractable;
  hash;
  bits;
  usages;
  bytes;
  algorithm = null;
  constructor(extractable, hash, bits, usages, bytes) {
    this.type = "secret";
    this.extractable = extractable;
    this.hash = hash;
    this.bits = bits;
    this.usages = usages;
    this.bytes = bytes;
  }
}
sealedProto(KeyState);

let keyOf;

class CryptoKey {
  #key;
  #usages = null;
  constructor(token, key) {
    if (token !== TOKEN) throw illegalConstructor();
    this.#key = key;
  }
  static {
    keyOf = (value) => {
      if (!isObject(value) || !(#key in value)) throw illegalInvocation("CryptoKey");
      return value.#key;
    };
    internal.isCryptoKey = (value) => isObject(value) && #key in value;
  }
  get type() { return keyOf(this).type; }
  get extractable() { return keyOf(this).extractable; }
  get algorithm() {
    const key = keyOf(this);
    return (key.algorithm ??= { name: "HMAC", hash: { name: key.hash }, length: key.bits });
  }
  get usages() {
    const key = keyOf(this);
    if (this.#usages === null) this.#usages = toArray(key.usages);
    return this.#usages;
  }
}
defineInterface(CryptoKey, "CryptoKey");

function toArray(list) {
  const out = [];
  for (let i = 0; i < list.length; i++) appendArray(out, list[i]);
  return out;
}

const allUsages = ["encrypt", "decrypt", "sign", "verify", "deriveKey", "deriveBits", "wrapKey", "unwrapKey"];

// readUsages converts keyUsages.
function readUsages(value) {
  return toSequence(value, (item) => toEnum(item, allUsages, "a key usage"), "keyUsages");
}

// hmacUsages: HMAC keys sign and verify; they are listed in that order, once each.
function hmacUsages(list) {
  let sign = false;
  let verify = false;
  for (let i = 0; i < list.length; i++) {
    if (list[i] === "sign") sign = true;
    else if (list[i] === "verify") verify = true;
    else throw new DOMException(`an HMAC key cannot be used to ${list[i]}`, "SyntaxError");
  }
  const out = new List();
  if (sign) out[out.length] = "sign";
  if (verify) out[out.length] = "verify";
  return out;
}

function checkBits(bytes, length) {
  let bits = lengthOf(bytes) * 8;
  if (bits === 0) throw new DOMException("the key is empty", "DataError");
  if (length !== undefined) {
    if (length > bits || length <= bits - 8) throw new DOMException("the length does not fit the key", "DataError");
    bits = length;
  }
  return bits;
}

function jwkBytes(jwk, hash, extractable, usages) {
  const { alg, ext, k, key_ops: ops, kty, use } = jwk;
  const bad = (what) => new DOMException(`the JSON Web Key's ${what} does not fit`, "DataError");
  if (kty !== "oct") throw bad("kty");
  if (typeof k !== "string") throw bad("k");
  const bytes = internal.fromBase64url(k);
  if (bytes === null) throw bad("k");
  if (alg !== undefined && alg !== jwkNames[hash]) throw bad("alg");
  if (usages.length > 0 && use !== undefined && use !== "sig") throw bad("use");
  if (ops !== undefined) checkOps(toSequence(ops, toDOMString, "key_ops"), usages, bad);
  if (ext !== undefined && !ext && extractable) throw bad("ext");
  return bytes;
}

function checkOps(ops, usages, bad) {
  for (let i = 0; i < usages.length; i++) {
    let found = false;
    for (let j = 0; j < ops.length; j++) if (ops[j] === usages[i]) found = true;
    if (!found) throw bad("key_ops");
  }
}

function importKey(format, keyData, algorithm, extractable, keyUsages) {
  const kind = toEnum(format, ["raw", "spki", "pkcs8", "jwk"], "format");
  const isJwk = !isBufferSource(keyData);
  if (isJwk && !isObject(keyData)) throw new TypeError("importKey: the key data is neither bytes nor a JSON Web Key");
  const data = isJwk ? keyData : copyBytes(keyData);
  const canExtract = !!extractable;
  const wanted = readUsages(keyUsages);
  if (kind === "jwk" && !isJwk) throw new TypeError("importKey: the key data of format jwk is not an object");
  if (kind !== "jwk" && isJwk) throw new TypeError("importKey: the key data is not bytes");
  const params = hmacParams(algorithm, true);
  const usages = hmacUsages(wanted);
  if (kind !== "raw" && kind !== "jwk") throw notSupported(`HMAC as ${kind}`);
  const bytes = kind === "raw" ? data : jwkBytes(data, params.hash, canExtract, usages);
  const bits = checkBits(bytes, params.length);
  if (usages.length === 0) throw new DOMException("a secret key without usages is of no use", "SyntaxError");
  return new CryptoKey(TOKEN, new KeyState(canExtract, params.hash, bits, usages, bytes));
}

function generateKey(algorithm, extractable, keyUsages) {
  const canExtract = !!extractable;
  const wanted = readUsages(keyUsages);
  const params = hmacParams(algorithm, true);
  const usages = hmacUsages(wanted);
  if (params.length === 0) throw new DOMException("a key cannot have a length of 0", "OperationError");
  const bits = params.length ?? blockBits[params.hash];
  if (bits > 65536) throw new DOMException("the key is too long", "OperationError");
  if (usages.length === 0) throw new DOMException("a secret key without usages is of no use", "SyntaxError");
  const bytes = new Uint8Array(MathCeil(bits / 8));
  random(bytes);
  return new CryptoKey(TOKEN, new KeyState(canExtract, params.hash, bits, usages, bytes));
}

function exportKey(format, key) {
  const kind = toEnum(format, ["raw", "spki", "pkcs8", "jwk"], "format");
  if (!internal.isCryptoKey(key)) throw new TypeError("exportKey: the key is not a CryptoKey");
  const k = keyOf(key);
  if (kind !== "raw" && kind !== "jwk") throw notSupported(`HMAC as ${kind}`);
  if (!k.extractable) throw new DOMException("the key is not extractable", "InvalidAccessError");
  if (kind === "raw") return TypedArrayPrototypeGetBuffer(new Uint8Array(k.bytes));
  return { alg: jwkNames[k.hash], ext: true, k: internal.toBase64url(k.bytes), key_ops: toArray(k.usages), kty: "oct" };
}

// usable checks that a key fits an algorithm and an operation, and gives its state.
function usable(algorithm, key, usage) {
  if (!internal.isCryptoKey(key)) throw new TypeError(`${usage}: the key is not a CryptoKey`);
  hmacParams(algorithm, false);
  const k = keyOf(key);
  for (let i = 0; i < k.usages.length; i++) if (k.usages[i] === usage) return k;
  throw new DOMException(`the key cannot be used to ${usage}`, "InvalidAccessError");
}

// ---- the interfaces ----

function promised(brand, make) {
  try {
    if (!brand) throw illegalInvocation("SubtleCrypto");
    return PromiseResolve(make());
  } catch (error) {
    return PromiseReject(error);
  }
}

function bufferOf(bytes) {
  return TypedArrayPrototypeGetBuffer(new Uint8Array(bytes));
}

class SubtleCrypto {
  #brand = true;
  constructor(token) {
    if (token !== TOKEN) throw illegalConstructor();
  }
  digest(algorithm, data) {
    return promised(#brand in this, () => {
      requireArguments(arguments.length, 2, "digest");
      const name = algorithmName(algorithm);
      toBufferSource(data, "digest: the data");
      return bufferOf(ask(askOps.DIGEST, hashName(name), internal.liveBytes(data)));
    });
  }
  sign(algorithm, key, data) {
    return promised(#brand in this, () => {
      requireArguments(arguments.length, 3, "sign");
      toBufferSource(data, "sign: the data");
      const k = usable(algorithm, key, "sign");
      return bufferOf(ask(askOps.HMAC, k.hash, k.bytes, internal.liveBytes(data)));
    });
  }
  verify(algorithm, key, signature, data) {
    return promised(#brand in this, () => {
      requireArguments(arguments.length, 4, "verify");
      toBufferSource(signature, "verify: the signature");
      toBufferSource(data, "verify: the data");
      const k = usable(algorithm, key, "verify");
      const expected = ask(askOps.HMAC, k.hash, k.bytes, internal.liveBytes(data));
      return ask(askOps.TIMING_SAFE_EQUAL, expected, internal.liveBytes(signature));
    });
  }
  importKey(format, keyData, algorithm, extractable, keyUsages) {
    return promised(#brand in this, () => {
      requireArguments(arguments.length, 5, "importKey");
      return importKey(format, keyData, algorithm, extractable, keyUsages);
    });
  }
  exportKey(format, key) {
    return promised(#brand in this, () => {
      requireArguments(arguments.length, 2, "exportKey");
      return exportKey(format, key);
    });
  }
  generateKey(algorithm, extractable, keyUsages) {
    return promised(#brand in this, () => {
      requireArguments(arguments.length, 3, "generateKey");
      return generateKey(algorithm, extractable, keyUsages);
    });
  }
  // timingSafeEqual is not in the standard; Workers has it.
  timingSafeEqual(a, b) {
    if (!(#brand in this)) throw illegalInvocation("SubtleCrypto");
    requireArguments(arguments.length, 2, "timingSafeEqual");
    const left = viewBytes(toBufferSource(a, "timingSafeEqual: the first argument"));
    const right = viewBytes(toBufferSource(b, "timingSafeEqual: the second argument"));
    if (lengthOf(left) !== lengthOf(right)) throw new TypeError("timingSafeEqual: the arguments differ in length");
    return ask(askOps.TIMING_SAFE_EQUAL, left, right);
  }
}
defineInterface(SubtleCrypto, "SubtleCrypto");
const subtle = new SubtleCrypto(TOKEN);

const integerArrays = ["Int8Array", "Uint8Array", "Uint8ClampedArray", "Int16Array", "Uint16Array", "Int32Array", "Uint32Array",
  "BigInt64Array", "BigUint64Array"];

function isIntegerArray(value) {
  const tag = TypedArrayPrototypeGetTag(value);
  for (let i = 0; i < integerArrays.length; i++) if (integerArrays[i] === tag) return true;
  return false;
}

class Crypto {
  #brand = true;
  constructor(token) {
    if (token !== TOKEN) throw illegalConstructor();
  }
  get subtle() {
    if (!isObject(this) || !(#brand in this)) throw illegalInvocation("Crypto");
    return subtle;
  }
  getRandomValues(array) {
    if (!(#brand in this)) throw illegalInvocation("Crypto");
    requireArguments(arguments.length, 1, "getRandomValues");
    if (!ArrayBufferIsView(array)) throw new TypeError("getRandomValues: the argument is not a typed array");
    if (!isIntegerArray(array)) throw new DOMException("getRandomValues: the array is not one of integers", "TypeMismatchError");
    const length = TypedArrayPrototypeGetByteLength(array);
    if (length > 65536) throw new DOMException("getRandomValues: more than 65536 bytes at once", "QuotaExceededError");
    if (length > 0) random(viewBytes(array));
    return array;
  }
  randomUUID() {
    if (!(#brand in this)) throw illegalInvocation("Crypto");
    const bytes = new Uint8Array(16);
    random(bytes);
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    let out = "";
    for (let i = 0; i < 16; i++) {
      if (i === 4 || i === 6 || i === 8 || i === 10) out += "-";
      out += (bytes[i] < 16 ? "0" : "") + NumberPrototypeToString(bytes[i], 16);
    }
    return out;
  }
}
defineInterface(Crypto, "Crypto");
defineGlobal("crypto", new Crypto(TOKEN), true);
