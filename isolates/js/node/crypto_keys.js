// node/crypto_keys.js is KeyObject of node:crypto: how keys are made, read and written. A key is its DER, which Go reads
// again for each use.

"use strict";

const {
  ArrayBufferIsView, Error, List, TypeError, Uint8Array, lengthOf, sealedProto,
} = primordials;
const { isArrayBuffer, subtleOps } = internal;
const { checks, coded, put, wrongType, wrongValue } = internal.node;
const { over } = internal.node.bufferParts;
const { failure, later, module, now } = internal.node.cryptoParts;
const { asked, bytesOf, soon } = internal.nodeModule("work");
const { randomBytes } = module; // code of the worker can replace what the module has
const { KEY_READ, KEY_WRITE, KEY_GENERATE, KEY_PARTS, KEY_FROM_PARTS } = subtleOps;

class KeyState {
  type; // secret, public, private
  kind = undefined; // rsa, ec, ed25519, x25519
  bytes; // DER, or those of a secret key
  publicBytes = null; // DER
  curve = "";
  bits = 0;
  exponent = null;
  constructor(type, bytes) {
    this.type = type;
    this.bytes = bytes;
  }
}
sealedProto(KeyState);

const TOKEN = { __proto__: null };
const curveNames = { __proto__: null, "P-256": "prime256v1", "P-384": "secp384r1", "P-521": "secp521r1" };

let keyIn;
let isKey;

class KeyObject {
  #key;
  constructor(token, key) {
    if (token !== TOKEN) throw coded(TypeError, "ERR_INVALID_ARG_VALUE", "keys are made by functions of node:crypto");
    this.#key = key;
  }
  static {
    keyIn = (value) => value.#key;
    isKey = (value) => value !== null && typeof value === "object" && #key in value;
  }
  static from() { throw coded(Error, "ERR_METHOD_NOT_IMPLEMENTED", "node:crypto has no KeyObject.from in a worker: use crypto.subtle.exportKey()"); }
  get type() { return this.#key.type; }
  toCryptoKey() { throw coded(Error, "ERR_METHOD_NOT_IMPLEMENTED", "node:crypto has no toCryptoKey in a worker: use crypto.subtle.importKey()"); }
  equals(other) {
    if (!isKey(other)) throw wrongType("otherKeyObject", "an instance of KeyObject", other);
    const a = this.#key;
    const b = other.#key;
    return a.type === b.type && lengthOf(a.bytes) === lengthOf(b.bytes) && host.ask(internal.askOps.TIMING_SAFE_EQUAL, a.bytes, b.bytes);
  }
}

class SecretKeyObject extends KeyObject {
  get symmetricKeySize() { return lengthOf(keyIn(this).bytes); }
  export(options = undefined) {
    if (options !== undefined) {
      checks.object(options, "options");
      if (options.format !== undefined) checks.oneOf(options.format, "options.format", ["buffer", "jwk"]);
    }
    const { bytes } = keyIn(this);
    if (options?.format === "jwk") return { kty: "oct", k: internal.toBase64url(bytes) };
    return over(new Uint8Array(bytes));
  }
}

class AsymmetricKeyObject extends KeyObject {
  get asymmetricKeyType() { return keyIn(this).kind; }
  get asymmetricKeyDetails() {
    const key = keyIn(this);
    if (key.kind === "rsa") {
      let e = 0n;
      for (let i = 0; i < lengthOf(key.exponent); i++) e = e * 256n + primordials.BigInt(key.exponent[i]);
      return { modulusLength: key.bits, publicExponent: e };
    }
    return key.kind === "ec" ? { namedCurve: curveNames[key.curve] } : {};
  }
}

class PublicKeyObject extends AsymmetricKeyObject {
  export(options = undefined) {
    checks.object(options, "options");
    return exported(keyIn(this), options, "options.");
  }
}

class PrivateKeyObject extends AsymmetricKeyObject {
  export(options = undefined) {
    checks.object(options, "options");
    return exported(keyIn(this), options, "options.");
  }
}

const objectOf = (key) =>
  new (key.type === "secret" ? SecretKeyObject : key.type === "public" ? PublicKeyObject : PrivateKeyObject)(TOKEN, key);

const labels = { __proto__: null, pkcs8: "PRIVATE KEY", spki: "PUBLIC KEY", sec1: "EC PRIVATE KEY" };
const incompatible = (type, why) => coded(Error, "ERR_CRYPTO_INCOMPATIBLE_KEY_OPTIONS", `The selected key encoding ${type} ${why}.`);

// exported writes a key as options say.
function exported(key, options, at) {
  const { format, type } = options;
  if (format === "jwk") return jwkOf(key);
  const isPrivate = key.type === "private";
  const types = isPrivate ? ["pkcs1", "pkcs8", "sec1"] : ["pkcs1", "spki"];
  if (primordials.ArrayPrototypeIndexOf(types, type) === -1) throw wrongValue(`${at}type`, type);
  if (format !== "pem" && format !== "der") throw wrongValue(`${at}format`, format);
  if (options.cipher !== undefined && options.cipher !== null) {
    throw coded(Error, "ERR_METHOD_NOT_IMPLEMENTED", "node:crypto encrypts no keys in a worker: encrypt the exported key");
  }
  if (type === "pkcs1" && key.kind !== "rsa") throw incompatible(type, "can only be used for RSA keys");
  if (type === "sec1" && key.kind !== "ec") throw incompatible(type, "can only be used for EC keys");
  const label = format === "der" ? "" : type === "pkcs1" ? (isPrivate ? "RSA PRIVATE KEY" : "RSA PUBLIC KEY") : labels[type];
  const out = now(KEY_WRITE, key.bytes, isPrivate, type, label);
  return format === "der" ? over(out) : host.decode(out, false);
}

const rsaMembers = ["n", "e", "d", "p", "q", "dp", "dq", "qi"];
const okpNames = { __proto__: null, ed25519: "Ed25519", x25519: "X25519" };

function jwkOf(key) {
  const isPrivate = key.type === "private";
  const parts = now(KEY_PARTS, key.bytes, isPrivate);
  const text = (i) => internal.toBase64url(parts[i]);
  if (key.kind === "rsa") {
    const out = { kty: "RSA" };
    for (let i = 0; i < parts.length; i++) out[rsaMembers[i]] = text(i);
    return out;
  }
  if (key.kind === "ec") {
    const out = { crv: key.curve };
    if (isPrivate) out.d = text(2);
    return put(out, { kty: "EC", x: text(0), y: text(1) });
  }
  const out = { crv: okpNames[key.kind] };
  if (isPrivate) out.d = text(2);
  return put(out, { x: text(0), kty: "OKP" });
}

// ---- keys of what the worker has ----

function stateOf(parts, wantsPublic) {
  const isPrivate = lengthOf(parts[0]) > 0 && !wantsPublic;
  const key = new KeyState(isPrivate ? "private" : "public", isPrivate ? parts[0] : parts[1]);
  key.publicBytes = parts[1];
  key.kind = host.decode(parts[2], false);
  key.curve = host.decode(parts[3], false);
  const b = parts[4];
  key.bits = (b[0] << 24) | (b[1] << 16) | (b[2] << 8) | b[3];
  key.exponent = parts[5];
  return key;
}

const unreadable = (text, isPEM) => (isPEM ? coded(Error, "ERR_OSSL_UNSUPPORTED", `error:1E08010C:DECODER routines::unsupported: ${text}`)
  : coded(Error, "ERR_OSSL_ASN1_WRONG_TAG", `error:068000A8:asn1 encoding routines::wrong tag: ${text}`));

function readParts(args) {
  const answer = asked(args);
  if (typeof answer === "string") throw unreadable(answer, args[2]);
  return answer;
}

const member = (jwk, name) => {
  const value = jwk[name];
  if (typeof value !== "string") throw wrongType(`key.${name}`, "of type string", value);
  const bytes = internal.fromBase64url(value);
  if (bytes === null || bytes === undefined) throw coded(TypeError, "ERR_CRYPTO_INVALID_JWK", "Invalid JWK data");
  return bytes;
};

function fromJwk(jwk, wantsPublic) {
  checks.object(jwk, "key.key");
  const { kty, crv } = jwk;
  checks.oneOf(kty, "key.kty", ["RSA", "EC", "OKP"]);
  const isPrivate = !wantsPublic; // a private key has d
  const names = kty === "RSA" ? rsaMembers : ["x", "y", "d"];
  const args = new List();
  args[0] = KEY_FROM_PARTS;
  args[1] = kty === "RSA" ? "rsa" : kty === "EC" ? "ec" : crv === "Ed25519" ? "ed25519" : crv === "X25519" ? "x25519" : "";
  args[2] = kty === "EC" ? `${crv}` : "";
  args[3] = isPrivate;
  for (let i = 0; i < 8; i++) {
    const name = names[i];
    const used = name !== undefined && (kty === "RSA" ? i < 2 || isPrivate : name === "x" || (name === "y" && kty === "EC") || (name === "d" && isPrivate));
    args[args.length] = used ? member(jwk, name) : null;
  }
  const answer = asked(args);
  if (typeof answer === "string") throw coded(TypeError, "ERR_CRYPTO_INVALID_JWK", "Invalid JWK data");
  return stateOf(answer, wantsPublic);
}

const isData = (value) => typeof value === "string" || ArrayBufferIsView(value) || isArrayBuffer(value);
const keyTypes = "of type string or an instance of ArrayBuffer, Buffer, TypedArray, DataView, KeyObject, or CryptoKey";

// read makes a KeyState of what a function takes as a key. wants is "private", or "public" for which a private key will do.
function read(given, wants, name = "key") {
  let value = given;
  let options = null;
  if (given !== null && typeof given === "object" && !isKey(given) && !isData(given)) {
    options = given;
    value = given.key;
  }
  if (isKey(value)) {
    const key = keyIn(value);
    if (key.type === "secret" || (wants === "private" && key.type !== "private")) {
      throw coded(TypeError, "ERR_CRYPTO_INVALID_KEY_OBJECT_TYPE", `Invalid key object type ${key.type}, expected ${wants}.`);
    }
    return key;
  }
  const wantsPublic = wants === "public";
  if (options !== null && options.format === "jwk") return fromJwk(value, wantsPublic);
  if (!isData(value)) throw wrongType(options === null ? name : `${name}.key`, options === null ? keyTypes : "of type string or an instance of ArrayBuffer, Buffer, TypedArray, or DataView", value);
  const bytes = bytesOf(value, name, options?.encoding);
  const format = options?.format ?? "pem";
  if (format !== "pem" && format !== "der") throw wrongValue(`${name}.format`, format);
  if (format === "pem") return stateOf(readParts([KEY_READ, bytes, true, "", !wantsPublic]), wantsPublic);
  const type = options.type;
  const types = wantsPublic ? ["pkcs1", "pkcs8", "spki", "sec1"] : ["pkcs1", "pkcs8", "sec1"];
  if (primordials.ArrayPrototypeIndexOf(types, type) === -1) throw wrongValue(`${name}.type`, type);
  return stateOf(readParts([KEY_READ, bytes, false, type, !wantsPublic]), wantsPublic);
}

const publicOf = (key) => {
  if (key.type === "public") return key;
  const made = new KeyState("public", key.publicBytes);
  made.publicBytes = key.publicBytes;
  made.kind = key.kind;
  made.curve = key.curve;
  made.bits = key.bits;
  made.exponent = key.exponent;
  return made;
};

function createPublicKey(key) {
  if (isKey(key)) {
    const state = keyIn(key);
    if (state.type !== "private") throw coded(TypeError, "ERR_CRYPTO_INVALID_KEY_OBJECT_TYPE", `Invalid key object type ${state.type}, expected private.`);
  }
  return objectOf(publicOf(read(key, "public")));
}

function createSecretKey(key, encoding = undefined) {
  if (!isData(key)) throw wrongType("key", "of type string or an instance of ArrayBuffer, Buffer, TypedArray, or DataView", key);
  return objectOf(new KeyState("secret", new Uint8Array(bytesOf(key, "key", encoding))));
}

// ---- generation ----

const kinds = ["rsa", "ec", "ed25519", "x25519"];
const others = ["rsa-pss", "dsa", "dh", "ed448", "x448"];
const webCurves = { __proto__: null, prime256v1: "P-256", secp384r1: "P-384", secp521r1: "P-521", "P-256": "P-256", "P-384": "P-384", "P-521": "P-521" };
const MOST_NOW = 2048; // bits of an RSA key that are made while JavaScript waits

function generateArgs(type, options) {
  checks.string(type, "type");
  if (primordials.ArrayPrototypeIndexOf(kinds, type) === -1) {
    if (primordials.ArrayPrototypeIndexOf(others, type) === -1) throw coded(TypeError, "ERR_INVALID_ARG_VALUE", `The argument 'type' must be a supported key type. Received ${internal.inspect(type)}`);
    throw coded(Error, "ERR_METHOD_NOT_IMPLEMENTED", `node:crypto makes no keys of the type ${type} in a worker: rsa, ec, ed25519 and x25519 are there`);
  }
  if (options !== undefined || type === "rsa" || type === "ec") checks.object(options, "options");
  let bits = 0;
  let curve = "";
  if (type === "rsa") {
    const { modulusLength, publicExponent = 65537 } = options;
    checks.integer(modulusLength, "options.modulusLength", 0, 4294967295);
    checks.integer(publicExponent, "options.publicExponent", 0, 4294967295);
    if (publicExponent !== 65537) throw wrongValue("options.publicExponent", publicExponent, "must be 65537 in a worker");
    if (modulusLength < 1024 || modulusLength > 4096) {
      throw internal.node.outOfRange("options.modulusLength", ">= 1024 && <= 4096 in a worker", modulusLength);
    }
    bits = modulusLength;
  }
  if (type === "ec") {
    const { namedCurve } = options;
    checks.string(namedCurve, "options.namedCurve");
    curve = webCurves[namedCurve];
    if (curve === undefined) throw coded(TypeError, "ERR_CRYPTO_INVALID_CURVE", "Invalid EC curve name");
  }
  return { __proto__: null, type, bits, curve, publicEncoding: encodingFor(options, "publicKeyEncoding"), privateEncoding: encodingFor(options, "privateKeyEncoding") };
}

function encodingFor(options, name) {
  const encoding = options?.[name];
  if (encoding === undefined || encoding === null) return null;
  if (typeof encoding !== "object") throw wrongValue(`options.${name}`, encoding);
  return encoding;
}

function pairOf(parts, a) {
  const key = stateOf(parts, false);
  const other = publicOf(key);
  return {
    publicKey: a.publicEncoding === null ? objectOf(other) : exported(other, a.publicEncoding, "options.publicKeyEncoding."),
    privateKey: a.privateEncoding === null ? objectOf(key) : exported(key, a.privateEncoding, "options.privateKeyEncoding."),
  };
}

function generateKeyPairSync(type, options = undefined) {
  const a = generateArgs(type, options);
  if (a.bits > MOST_NOW) throw internal.node.outOfRange("options.modulusLength", `<= ${MOST_NOW} while the worker waits: generateKeyPair() makes longer ones`, a.bits);
  return pairOf(now(KEY_GENERATE, a.type, a.bits, a.curve), a);
}

function generateKeyPair(type, options, callback = undefined) {
  if (typeof options === "function") {
    callback = options;
    options = undefined;
  }
  checks.function(callback, "callback");
  const a = generateArgs(type, options);
  later([KEY_GENERATE, a.type, a.bits, a.curve], (parts) => {
    const pair = pairOf(parts, a);
    return [null, pair.publicKey, pair.privateKey];
  }, callback);
}
// util.promisify gives both keys.
internal.node.hide(generateKeyPair, internal.node.kCustomPromisify, (type, options) => new primordials.Promise((resolve, reject) => {
  generateKeyPair(type, options, (error, publicKey, privateKey) => { error ? reject(error) : resolve({ publicKey, privateKey }); });
}));

function generateKeySync(type, options) {
  checks.string(type, "type");
  checks.oneOf(type, "type", ["hmac", "aes"]);
  checks.object(options, "options");
  const { length } = options;
  if (type === "hmac") checks.integer(length, "options.length", 8, 2147483647);
  else checks.oneOf(length, "options.length", [128, 192, 256]);
  if (length > 8388608) throw failure("a key has at most 1 MiB");
  return objectOf(new KeyState("secret", randomBytes(primordials.MathTrunc(length / 8))));
}

put(module, { KeyObject, SecretKeyObject, PublicKeyObject, PrivateKeyObject });
put(module, {
  createPublicKey, createSecretKey, generateKeyPair, generateKeyPairSync, generateKeySync,
  createPrivateKey(key) {
    if (isKey(key)) throw wrongType("key", "of type string or an instance of ArrayBuffer, Buffer, TypedArray, or DataView", key);
    return objectOf(read(key, "private"));
  },
  generateKey(type, options, callback) {
    checks.function(callback, "callback");
    soon(callback, undefined, generateKeySync(type, options));
  },
});

// secretOf returns the bytes of a secret KeyObject. It returns undefined for what is no KeyObject.
const secretOf = (value) => {
  if (!isKey(value)) return undefined;
  const key = keyIn(value);
  if (key.type !== "secret") throw coded(TypeError, "ERR_CRYPTO_INVALID_KEY_OBJECT_TYPE", `Invalid key object type ${key.type}, expected secret.`);
  return key.bytes;
};
internal.node.keys = { __proto__: null, isKey, keyIn, publicOf, read, secretOf, webCurves };
