// node/crypto_hash.js is createHash, createHmac and hash of node:crypto. What was hashed so far is a state of some hundred
// bytes, which Go returns and takes again.

"use strict";

const {
  ArrayBufferIsView, Error, StringPrototypeToLowerCase, TypeError, TypedArrayPrototypeSet, Uint8Array, lengthOf, sealedProto,
  subarray,
} = primordials;
const { isArrayBuffer, subtleOps } = internal;
const { checks, coded, put, wrongType } = internal.node;
const { LazyTransform, PIECE, asked, bytesOf, inPieces, later, shown } = internal.nodeModule("work");
const { HASH_UPDATE, HASH_END, HMAC_UPDATE, HMAC_END } = subtleOps;

const failure = (text) => coded(Error, "ERR_CRYPTO_OPERATION_FAILED", text);

// now has Go carry out a function of internal.subtleOps, while the caller waits.
const now = (...args) => nowOf(args);

function nowOf(args) {
  const answer = asked(args);
  if (typeof answer === "string") throw failure(answer);
  return answer;
}

// sizes has the length of each hash, by Go's name.
const sizes = {
  __proto__: null,
  md5: 16, sha1: 20, sha224: 28, sha256: 32, sha384: 48, sha512: 64, "sha512-224": 28, "sha512-256": 32,
  "sha3-224": 28, "sha3-256": 32, "sha3-384": 48, "sha3-512": 64, shake128: 16, shake256: 32, blake2b512: 64, blake2s256: 32,
  ripemd160: 20,
};
const aliases = {
  __proto__: null,
  rmd160: "ripemd160", ripemd: "ripemd160", "ssl3-md5": "md5", "ssl3-sha1": "sha1", "rsa-sha1-2": "sha1", "sha-1": "sha1", "sha-256": "sha256",
  "sha-384": "sha384", "sha-512": "sha512", "sha512/224": "sha512-224", "sha512/256": "sha512-256", "rsa-sha512/224": "sha512-224",
  "rsa-sha512/256": "sha512-256", "sha2-224": "sha224", "sha2-256": "sha256", "sha2-384": "sha384", "sha2-512": "sha512",
  ripemd160withrsa: "ripemd160",
};
const ofRSA = ["md5", "ripemd160", "sha1", "sha224", "sha256", "sha3-224", "sha3-256", "sha3-384", "sha3-512", "sha384", "sha512"];
const listed = ["RSA-MD5", "RSA-RIPEMD160", "RSA-SHA1", "RSA-SHA1-2", "RSA-SHA224", "RSA-SHA256", "RSA-SHA3-224", "RSA-SHA3-256", "RSA-SHA3-384",
  "RSA-SHA3-512", "RSA-SHA384", "RSA-SHA512", "RSA-SHA512/224", "RSA-SHA512/256", "blake2b512", "blake2s256", "md5", "ripemd", "ripemd160", "rmd160",
  "sha1", "sha224", "sha256", "sha3-224", "sha3-256", "sha3-384", "sha3-512", "sha384", "sha512", "sha512-224", "sha512-256", "shake128", "shake256"];
for (let i = 0; i < ofRSA.length; i++) {
  aliases[`rsa-${ofRSA[i]}`] = ofRSA[i];
  aliases[`${ofRSA[i]}withrsaencryption`] = ofRSA[i];
}

// digestOf returns Go's name of a hash, or undefined.
function digestOf(name) {
  const low = StringPrototypeToLowerCase(name);
  return sizes[low] === undefined ? aliases[low] : low;
}

const isXof = (name) => name === "shake128" || name === "shake256";

// hasNoState is a hash that takes all its data at once.
const hasNoState = (name) => name === "ripemd160";
const MOST_AT_ONCE = 3145728;
const SMALL = 4096; // what is shorter waits for more

// Digester hashes what it takes. key is a key of HMAC, or null.
class Digester {
  name;
  key;
  state = null;
  pending = null; // bytes that wait
  n = 0; // how many
  own = false; // nobody else has pending
  done = false;
  constructor(name, key) {
    this.name = name;
    this.key = key;
  }
  copy() {
    const other = new Digester(this.name, this.key);
    other.state = this.state;
    if (this.n > 0) other.pending = new Uint8Array(subarray(this.pending, 0, this.n));
    other.n = this.n;
    return other;
  }
  take(bytes) {
    const n = lengthOf(bytes);
    if (n === 0) return;
    const most = hasNoState(this.name) ? MOST_AT_ONCE : SMALL;
    if (this.n + n <= most) {
      this.keep(bytes, n, most);
      return;
    }
    if (most === MOST_AT_ONCE) throw failure(`${this.name} takes at most ${MOST_AT_ONCE} bytes`);
    this.flush();
    inPieces(bytes, (part) => { this.state = this.update(part); });
  }
  keep(bytes, n, most) {
    if (this.pending === null || lengthOf(this.pending) < this.n + n) {
      let room = this.pending === null ? n : 2 * (this.n + n);
      if (room > most) room = most;
      const grown = new Uint8Array(room);
      if (this.n > 0) TypedArrayPrototypeSet(grown, subarray(this.pending, 0, this.n), 0);
      this.pending = grown;
    }
    TypedArrayPrototypeSet(this.pending, bytes, this.n);
    this.n += n;
  }
  rest() { return this.n === 0 ? null : subarray(this.pending, 0, this.n); }
  flush() {
    if (this.n > 0) this.state = this.update(this.rest());
    this.n = 0;
  }
  update(bytes) {
    return this.key === null ? now(HASH_UPDATE, this.name, this.state, bytes) : now(HMAC_UPDATE, this.name, this.key, this.state, bytes);
  }
  end(length) {
    this.done = true;
    return this.key === null ? now(HASH_END, this.name, this.state, this.rest(), length)
      : now(HMAC_END, this.name, this.key, this.state, this.rest());
  }
}
sealedProto(Digester);

const finalized = () => coded(Error, "ERR_CRYPTO_HASH_FINALIZED", "Digest already called");

function lengthFor(name, options) {
  const length = options?.outputLength;
  if (length === undefined || length === null) return sizes[name];
  checks.integer(length, "options.outputLength", 0, 4294967295);
  if (!isXof(name) && length !== sizes[name]) {
    throw coded(Error, "ERR_OSSL_EVP_NOT_XOF_OR_INVALID_LENGTH", "error:030000B2:digital envelope routines::not XOF or invalid length");
  }
  return length;
}

// ofHash has the state of a Hash, for copy().
let copied = null;

class Hash extends LazyTransform {
  #digest;
  #length;
  constructor(algorithm, options = undefined) {
    checks.string(algorithm, "algorithm");
    const name = digestOf(algorithm);
    if (name === undefined) throw new Error("Digest method not supported");
    super(options !== null && typeof options === "object" ? options : undefined);
    this.#length = lengthFor(name, options);
    this.#digest = copied ?? new Digester(name, null);
    copied = null;
  }
  copy(options = undefined) {
    if (this.#digest.done) throw finalized();
    const from = this.#digest;
    const { name } = from;
    const made = new Hash(name, isXof(name) ? { __proto__: null, outputLength: this.#length, ...options } : options);
    made.#digest = from.copy();
    return made;
  }
  update(data, encoding = undefined) {
    if (this.#digest.done) throw finalized();
    this.#digest.take(bytesOf(data, "data", encoding, false));
    return this;
  }
  digest(encoding = undefined) {
    if (this.#digest.done) throw finalized();
    return shown(this.#digest.end(this.#length), encoding === undefined ? undefined : `${encoding}`);
  }
  _transform(chunk, encoding, callback) {
    this.update(chunk, encoding);
    callback();
  }
  _flush(callback) {
    this.push(this.digest());
    callback();
  }
}

// keyBytes returns the bytes of a secret key: a string, bytes, or a KeyObject.
function keyBytes(key, name = "key", encoding = undefined) {
  const secret = internal.node.keys?.secretOf(key);
  if (secret !== undefined) return secret;
  if (typeof key !== "string" && !ArrayBufferIsView(key) && !isArrayBuffer(key)) {
    throw wrongType(name, "of type string or an instance of ArrayBuffer, Buffer, TypedArray, DataView, KeyObject, or CryptoKey", key);
  }
  return new Uint8Array(bytesOf(key, name, encoding));
}

class Hmac extends LazyTransform {
  #digest;
  constructor(algorithm, key, options = undefined) {
    checks.string(algorithm, "hmac");
    const bytes = keyBytes(key, "key", options?.encoding);
    const name = digestOf(algorithm);
    if (name === undefined || isXof(name)) throw invalidDigest(algorithm);
    super(options);
    this.#digest = new Digester(name, bytes);
  }
  update(data, encoding = undefined) {
    if (this.#digest.done) throw finalized();
    this.#digest.take(bytesOf(data, "data", encoding, false));
    return this;
  }
  digest(encoding = undefined) {
    if (this.#digest.done) return shown(new Uint8Array(0), encoding === undefined ? undefined : `${encoding}`);
    return shown(this.#digest.end(0), encoding === undefined ? undefined : `${encoding}`);
  }
  _transform(chunk, encoding, callback) {
    this.update(chunk, encoding);
    callback();
  }
  _flush(callback) {
    this.push(this.digest());
    callback();
  }
}

const invalidDigest = (name) => coded(TypeError, "ERR_CRYPTO_INVALID_DIGEST", `Invalid digest: ${name}`);

// validDigest is digestOf for functions that have a key.
function validDigest(name, argument = "digest") {
  checks.string(name, argument);
  const known = digestOf(name);
  if (known === undefined) throw invalidDigest(name);
  return known;
}

const functions = {
  createHash(algorithm, options) { return new Hash(algorithm, options); },
  createHmac(hmac, key, options) { return new Hmac(hmac, key, options); },
  hash(algorithm, data, outputEncoding = "hex") {
    checks.string(algorithm, "algorithm");
    if (typeof data !== "string" && !ArrayBufferIsView(data)) throw wrongType("input", "of type string or an instance of Buffer, TypedArray, or DataView", data);
    const encoding = outputEncoding !== null && typeof outputEncoding === "object" ? outputEncoding.outputEncoding ?? "hex" : outputEncoding;
    checks.string(encoding, "outputEncoding");
    const bytes = bytesOf(data, "input", undefined, false);
    const name = digestOf(algorithm);
    if (name === undefined) throw new Error("Digest method not supported");
    const digest = new Digester(name, null);
    if (lengthOf(bytes) > PIECE) digest.take(bytes);
    else return shown(now(HASH_END, name, null, bytes, sizes[name]), encoding);
    return shown(digest.end(sizes[name]), encoding);
  },
  getHashes() {
    const out = [];
    for (let i = 0; i < listed.length; i++) internal.appendArray(out, listed[i]);
    return out;
  },
};

const module = put({}, functions);
put(module, { Hash, Hmac });
internal.node.cryptoParts = {
  __proto__: null, Digester, digestOf, digestSizes: sizes, failure, isXof, keyBytes, module, now, nowOf, validDigest,
  later: (args, made, callback, fail = failure) => { later(args, made, callback, fail); },
};
