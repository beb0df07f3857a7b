// node/crypto_sign.js has what node:crypto does with keys: signatures, encryption and shared secrets.

"use strict";

const { ArrayBufferIsView, Error, List, RangeError, TypeError, TypedArrayPrototypeSet, Uint8Array, lengthOf, subarray } = primordials;
const { isArrayBuffer, subtleOps } = internal;
const { checks, coded, put, wrongType } = internal.node;
const { Digester, digestSizes, later, module, now, nowOf, validDigest } = internal.node.cryptoParts;
const { LazyTransform, asked, bytesOf, shown, soon } = internal.nodeModule("work");
const { isKey, keyIn, publicOf, read, webCurves } = internal.node.keys;
const { KEY_SIGN, KEY_VERIFY, KEY_ENCRYPT, KEY_DECRYPT, KEY_AGREE } = subtleOps;

const constants = {
  RSA_PKCS1_PADDING: 1, RSA_NO_PADDING: 3, RSA_PKCS1_OAEP_PADDING: 4, RSA_X931_PADDING: 5, RSA_PKCS1_PSS_PADDING: 6,
  RSA_PSS_SALTLEN_DIGEST: -1, RSA_PSS_SALTLEN_MAX_SIGN: -2, RSA_PSS_SALTLEN_AUTO: -2, POINT_CONVERSION_COMPRESSED: 2,
  POINT_CONVERSION_UNCOMPRESSED: 4, POINT_CONVERSION_HYBRID: 6, DH_CHECK_P_NOT_SAFE_PRIME: 2, DH_CHECK_P_NOT_PRIME: 1,
  DH_UNABLE_TO_CHECK_GENERATOR: 4, DH_NOT_SUITABLE_GENERATOR: 8, ENGINE_METHOD_NONE: 0, ENGINE_METHOD_ALL: 65535, TLS1_VERSION: 769,
  TLS1_1_VERSION: 770, TLS1_2_VERSION: 771, TLS1_3_VERSION: 772, defaultCipherList: "", defaultCoreCipherList: "",
};

// options reads how a signature is made.
function options(key) {
  const out = { __proto__: null, padding: 0, salt: -2, plain: false };
  if (key === null || typeof key !== "object" || isKey(key) || ArrayBufferIsView(key)) return out;
  const { padding, saltLength, dsaEncoding } = key;
  if (padding !== undefined) {
    checks.integer(padding, "key.padding");
    if (padding !== 1 && padding !== 6) throw internal.node.wrongValue("key.padding", padding);
    out.padding = padding;
  }
  if (saltLength !== undefined) {
    checks.integer(saltLength, "key.saltLength", -2, 2147483647);
    out.salt = saltLength;
  }
  if (dsaEncoding !== undefined) {
    checks.oneOf(dsaEncoding, "key.dsaEncoding", ["der", "ieee-p1363"]);
    out.plain = dsaEncoding === "ieee-p1363";
  }
  return out;
}

// Signer is what Sign and Verify share: a hash.
class Signer extends LazyTransform {
  #digest;
  constructor(algorithm, given) {
    checks.string(algorithm, "algorithm");
    const name = validDigest(algorithm, "algorithm");
    super(given !== null && typeof given === "object" ? given : undefined);
    this.#digest = new Digester(name, null);
  }
  static finish(signer) {
    const digest = signer.#digest;
    if (digest.done) throw coded(Error, "ERR_CRYPTO_INVALID_STATE", "Not initialised");
    return [digest.name, digest.end(digestSizes[digest.name])];
  }
  update(data, encoding = undefined) {
    if (this.#digest.done) throw coded(Error, "ERR_CRYPTO_INVALID_STATE", "Not initialised");
    this.#digest.take(bytesOf(data, "data", encoding, false));
    return this;
  }
  _transform(chunk, encoding, callback) {
    this.update(chunk, encoding);
    callback();
  }
}
const { finish } = Signer;
delete Signer.finish;

const noDigest = () => coded(Error, "ERR_OSSL_EVP_UNSUPPORTED", "error:1C800094:Provider routines::keys of this kind sign no digests: use crypto.sign()");

const noKey = () => coded(Error, "ERR_CRYPTO_SIGN_KEY_REQUIRED", "No key provided to sign");

class Sign extends Signer {
  sign(key, encoding = undefined) {
    if (!key) throw noKey();
    const state = read(key, "private");
    const o = options(key);
    if (state.kind === "ed25519") throw noDigest();
    const digest = finish(this);
    return shown(now(KEY_SIGN, state.bytes, digest[1], digest[0], o.padding, o.salt, o.plain), encoding);
  }
}

class Verify extends Signer {
  verify(key, signature, encoding = undefined) {
    if (!key) throw noKey();
    const state = publicOf(read(key, "public"));
    const o = options(key);
    const bytes = bytesOf(signature, "signature", encoding);
    if (state.kind === "ed25519") throw noDigest();
    const digest = finish(this);
    return now(KEY_VERIFY, state.bytes, digest[1], bytes, digest[0], o.padding, o.salt, o.plain);
  }
}

// prepared returns the arguments of KEY_SIGN or KEY_VERIFY: the key, what is signed, [a signature,] and how.
function prepared(algorithm, data, key, wants, signature) {
  if (algorithm !== null && algorithm !== undefined) checks.string(algorithm, "algorithm");
  if (typeof data === "string" || (!ArrayBufferIsView(data) && !isArrayBuffer(data))) {
    throw wrongType("data", "an instance of ArrayBuffer, Buffer, TypedArray, or DataView", data);
  }
  const bytes = bytesOf(data, "data");
  if (!key) throw noKey();
  const o = options(key);
  const state = wants === "private" ? read(key, wants) : publicOf(read(key, wants));
  const args = new List();
  args[0] = wants === "private" ? KEY_SIGN : KEY_VERIFY;
  args[1] = state.bytes;
  let name = "";
  if (state.kind === "ed25519") {
    if (algorithm !== null && algorithm !== undefined) throw coded(Error, "ERR_OSSL_INVALID_DIGEST", "error:1C80007A:Provider routines::invalid digest");
    args[2] = bytes;
  } else {
    name = validDigest(algorithm ?? (state.kind === "rsa" || state.kind === "ec" ? "sha256" : ""), "algorithm");
    const digest = new Digester(name, null);
    digest.take(bytes);
    args[2] = digest.end(digestSizes[name]);
  }
  if (signature !== undefined) args[3] = bytesOf(signature, "signature", undefined);
  const how = [name, o.padding, o.salt, o.plain];
  for (let i = 0; i < how.length; i++) args[args.length] = how[i];
  return args;
}

const asBuffer = (answer) => [null, shown(answer, undefined)];

function sign(algorithm, data, key, callback = undefined) {
  if (callback !== undefined) checks.function(callback, "callback");
  const args = prepared(algorithm, data, key, "private", undefined);
  if (callback === undefined) return shown(nowOf(args), undefined);
  later(args, asBuffer, callback);
  return undefined;
}

function verify(algorithm, data, key, signature, callback = undefined) {
  if (callback !== undefined) checks.function(callback, "callback");
  if (typeof signature === "string" || (!ArrayBufferIsView(signature) && !isArrayBuffer(signature))) {
    throw wrongType("signature", "an instance of ArrayBuffer, Buffer, TypedArray, or DataView", signature);
  }
  const args = prepared(algorithm, data, key, "public", signature);
  if (callback === undefined) return nowOf(args);
  later(args, (is) => [null, is], callback);
  return undefined;
}

// ---- encryption ----

function crypt(op, key, buffer, wants) {
  const state = wants === "private" ? read(key, wants) : publicOf(read(key, wants));
  const given = key !== null && typeof key === "object" && !isKey(key) && !ArrayBufferIsView(key) ? key : undefined;
  const { padding = 4, oaepHash = "sha1", oaepLabel } = given ?? {};
  checks.integer(padding, "key.padding");
  const label = oaepLabel === undefined ? null : bytesOf(oaepLabel, "key.oaepLabel", given.encoding);
  const bytes = bytesOf(buffer, "buffer", given?.encoding);
  if (wants === "private" && padding === 1) {
    throw coded(TypeError, "ERR_INVALID_ARG_VALUE", "RSA_PKCS1_PADDING is no longer supported for private decryption");
  }
  return shown(now(op, state.bytes, padding, validDigest(oaepHash, "key.oaepHash"), label, bytes), undefined);
}

// ---- shared secrets ----

function diffieHellman(given, callback = undefined) {
  checks.object(given, "options");
  if (callback !== undefined) checks.function(callback, "callback");
  const { privateKey, publicKey } = given;
  if (!isKey(privateKey)) throw internal.node.wrongValue("options.privateKey", privateKey);
  if (!isKey(publicKey)) throw internal.node.wrongValue("options.publicKey", publicKey);
  const mine = keyIn(privateKey);
  const theirs = keyIn(publicKey);
  if (mine.type !== "private") throw coded(TypeError, "ERR_CRYPTO_INVALID_KEY_OBJECT_TYPE", `Invalid key object type ${mine.type}, expected private.`);
  if (theirs.type === "secret") throw coded(TypeError, "ERR_CRYPTO_INVALID_KEY_OBJECT_TYPE", "Invalid key object type secret, expected private or public.");
  if (mine.kind !== theirs.kind) throw coded(Error, "ERR_CRYPTO_INCOMPATIBLE_KEY", `Incompatible key types for Diffie-Hellman: ${mine.kind} and ${theirs.kind}`);
  const secret = now(KEY_AGREE, mine.bytes, theirs.publicBytes);
  if (callback === undefined) return shown(secret, undefined);
  soon(callback, null, shown(secret, undefined));
  return undefined;
}

const sizes = { __proto__: null, "P-256": 32, "P-384": 48, "P-521": 66 };

// formed returns a point in the form that the caller wants.
function formed(point, format) {
  const n = (lengthOf(point) - 1) / 2;
  if (format === undefined || format === "uncompressed") return new Uint8Array(point);
  if (format === "compressed") {
    const out = new Uint8Array(subarray(point, 0, 1 + n));
    out[0] = 2 + (point[2 * n] & 1);
    return out;
  }
  if (format !== "hybrid") throw coded(TypeError, "ERR_CRYPTO_ECDH_INVALID_FORMAT", `Invalid ECDH format: ${format}`);
  const out = new Uint8Array(point);
  out[0] = 6 + (point[2 * n] & 1);
  return out;
}

function curveFor(name) {
  checks.string(name, "curve");
  const curve = webCurves[name];
  if (curve === undefined) throw coded(TypeError, "ERR_CRYPTO_INVALID_CURVE", "Invalid EC curve name");
  return curve;
}

function pointOf(curve, bytes) {
  const answer = asked([subtleOps.EC_IMPORT_POINT, curve, bytes]);
  if (typeof answer === "string") throw coded(Error, "ERR_CRYPTO_ECDH_INVALID_PUBLIC_KEY", "Public key is not valid for specified curve");
  return answer;
}

class ECDH {
  #curve;
  #key = null; // the scalar, then the point
  constructor(curve) {
    this.#curve = curveFor(curve);
  }
  static convertKey(key, curve, inputEncoding = undefined, outputEncoding = undefined, format = undefined) {
    return shown(formed(pointOf(curveFor(curve), bytesOf(key, "key", inputEncoding)), format), outputEncoding);
  }
  #have(part) {
    if (this.#key === null) throw coded(Error, "ERR_CRYPTO_OPERATION_FAILED", `Failed to get ECDH ${part} key`);
    return this.#key;
  }
  generateKeys(encoding = undefined, format = undefined) {
    this.#key = now(subtleOps.EC_GENERATE, this.#curve)[0];
    return this.getPublicKey(encoding, format);
  }
  getPublicKey(encoding = undefined, format = undefined) {
    return shown(formed(subarray(this.#have("public"), sizes[this.#curve]), format), encoding);
  }
  getPrivateKey(encoding = undefined) {
    const size = sizes[this.#curve];
    const key = this.#have("private");
    let from = 0;
    while (from < size - 1 && key[from] === 0) from++; // as Node, without zeros before it
    return shown(new Uint8Array(subarray(key, from, size)), encoding);
  }
  setPrivateKey(key, encoding = undefined) {
    const bytes = bytesOf(key, "key", encoding);
    const size = sizes[this.#curve];
    const scalar = new Uint8Array(size);
    if (lengthOf(bytes) <= size) TypedArrayPrototypeSet(scalar, bytes, size - lengthOf(bytes));
    const answer = asked([subtleOps.EC_IMPORT_SCALAR, this.#curve, scalar, null]);
    if (typeof answer === "string") throw coded(Error, "ERR_CRYPTO_INVALID_KEYTYPE", "Private key is not valid for specified curve.");
    this.#key = answer;
    return this;
  }
  computeSecret(other, inputEncoding = undefined, outputEncoding = undefined) {
    if (this.#key === null) throw coded(RangeError, "ERR_CRYPTO_INVALID_KEYPAIR", "Invalid key pair");
    const point = pointOf(this.#curve, bytesOf(other, "otherPublicKey", inputEncoding));
    return shown(now(subtleOps.ECDH, this.#curve, this.#have("private"), point), outputEncoding);
  }
}

put(module, { Sign, Verify, ECDH, constants: put({ __proto__: null }, constants) });
put(module, {
  sign, verify, diffieHellman,
  createSign(algorithm, given) { return new Sign(algorithm, given); },
  createVerify(algorithm, given) { return new Verify(algorithm, given); },
  publicEncrypt(key, buffer) { return crypt(KEY_ENCRYPT, key, buffer, "public"); },
  privateDecrypt(key, buffer) { return crypt(KEY_DECRYPT, key, buffer, "private"); },
  createECDH(curve) { return new ECDH(curve); },
  getCurves() { return ["prime256v1", "secp384r1", "secp521r1"]; },
});
