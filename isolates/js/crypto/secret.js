// crypto/secret.js has the algorithms of Web Crypto without public keys: digests, HMAC, AES, HKDF and PBKDF2.

"use strict";

const { MathCeil, Uint8Array, lengthOf, subarray } = primordials;
const { DOMException, subtleOps } = internal;
const { crypto } = internal;
const {
  KeyState, badJwk, checkJwk, isLong, jwkBytes, listOf, notSupported, params, register, requireUsages, work,
} = crypto;
const { random } = host;

function failed(message) {
  return new DOMException(message, "OperationError");
}

// ---- digests ----

const hashes = ["SHA-1", "SHA-256", "SHA-384", "SHA-512"];
const blockBits = { __proto__: null, "SHA-1": 512, "SHA-256": 512, "SHA-384": 1024, "SHA-512": 1024 };

function registerDigest(name, own) {
  register({
    __proto__: null,
    name,
    params: { __proto__: null, digest: null, ...own },
    digest: (p, data) => work(isLong(data), "OperationError", [subtleOps.DIGEST, name, data]),
  });
}

// An algorithm that is registered for "hash" can be the hash of other algorithms.
for (let i = 0; i < hashes.length; i++) registerDigest(hashes[i], { __proto__: null, hash: null });
const sha3 = ["SHA3-256", "SHA3-384", "SHA3-512"];
for (let i = 0; i < sha3.length; i++) registerDigest(sha3[i], null);
registerDigest("MD5", null); // not in the standard; Workers has it

// streamedDigest returns the name of a digest that can be made chunk by chunk. Its state is bytes, or null before the
// first chunk.
crypto.streamedDigest = (identifier) => {
  const { name } = crypto.normalize(crypto.toAlgorithm(identifier), "digest").algorithm;
  for (let i = 0; i < sha3.length; i++) if (sha3[i] === name) throw notSupported(`${name} for a DigestStream`);
  return name;
};
crypto.digestUpdate = (name, state, data) => work(isLong(data), "OperationError", [subtleOps.DIGEST_UPDATE, name, state ?? noBytes(), data]);
crypto.digestEnd = (name, state) => work(false, "OperationError", [subtleOps.DIGEST_END, name, state ?? noBytes()]);

function noBytes() {
  return new Uint8Array(0);
}

// ---- secret keys ----

// importSecret returns the bytes of a key in format raw or jwk. checkAlg throws when alg does not match the key.
function importSecret(format, data, extractable, usages, use, what, checkAlg) {
  if (format === "raw") return data;
  if (format !== "jwk") throw notSupported(`${what} as ${format}`);
  checkJwk(data, "oct", use, extractable, usages);
  const bytes = jwkBytes(data, "k");
  if (data.alg !== undefined) checkAlg(data.alg, bytes);
  return bytes;
}

function exportSecret(format, key, alg) {
  if (format === "raw") return new Uint8Array(key.bytes);
  if (format !== "jwk") throw notSupported(`${key.algorithm.name} as ${format}`);
  return { alg, ext: key.extractable, k: internal.toBase64url(key.bytes), key_ops: crypto.toArray(key.usages), kty: "oct" };
}

function randomBytes(bits) {
  const bytes = new Uint8Array(MathCeil(bits / 8));
  random(bytes);
  return clearTail(bytes, bits);
}

// clearTail zeroes the bits of the last byte after the given number of bits.
function clearTail(bytes, bits) {
  const rest = bits % 8;
  if (rest !== 0) bytes[lengthOf(bytes) - 1] &= 0xff << (8 - rest);
  return bytes;
}

// firstBits returns the result of a derivation from a secret: the whole secret, or the given number of bits.
crypto.firstBits = (secret, bits) => {
  if (bits === null) return secret;
  if (bits > lengthOf(secret) * 8) throw failed(`the secret has only ${lengthOf(secret) * 8} bits`);
  return clearTail(new Uint8Array(subarray(secret, 0, MathCeil(bits / 8))), bits);
};

// ---- HMAC ----

const hmacAlg = { __proto__: null, "SHA-1": "HS1", "SHA-256": "HS256", "SHA-384": "HS384", "SHA-512": "HS512" };
const hmacUsages = listOf(["sign", "verify"]);
const MAX_HMAC_BITS = 524288;

register({
  __proto__: null,
  name: "HMAC",
  params: {
    __proto__: null, sign: null, verify: null, generateKey: params.hmac, importKey: params.hmac, exportKey: null,
    keyLength: params.hmac,
  },
  describe: (d) => ({ name: "HMAC", hash: { name: d.hash }, length: d.length }),
  sign: (p, key, data) =>
    work(isLong(data) || isLong(key.bytes), "OperationError", [subtleOps.HMAC, key.details.hash, key.bytes, data]),
  verify: (p, key, signature, data) => work(isLong(data) || isLong(key.bytes), "OperationError",
    [subtleOps.HMAC_EQUAL, key.details.hash, key.bytes, signature, data]),
  generateKey(p, extractable, usages) {
    requireUsages(usages, hmacUsages, "an HMAC key");
    if (p.length === 0) throw failed("a key cannot have a length of 0");
    const bits = p.length ?? blockBits[p.hash];
    if (bits > MAX_HMAC_BITS) throw failed(`an HMAC key has at most ${MAX_HMAC_BITS} bits`);
    return new KeyState("secret", this, { __proto__: null, hash: p.hash, length: bits }, randomBytes(bits));
  },
  importKey(format, data, p, extractable, usages) {
    requireUsages(usages, hmacUsages, "an HMAC key");
    const bytes = importSecret(format, data, extractable, usages, "sig", "HMAC", (alg) => {
      if (alg !== hmacAlg[p.hash]) throw badJwk("alg");
    });
    let bits = lengthOf(bytes) * 8;
    if (bits === 0) throw new DOMException("the key is empty", "DataError");
    if (p.length !== undefined) {
      if (p.length > bits || p.length <= bits - 8) throw new DOMException("the length does not fit the key", "DataError");
      bits = p.length;
    }
    return new KeyState("secret", this, { __proto__: null, hash: p.hash, length: bits }, clearTail(bytes, bits));
  },
  exportKey: (format, key) => exportSecret(format, key, hmacAlg[key.details.hash]),
  keyLength(p) {
    if (p.length === undefined) return blockBits[p.hash];
    if (p.length === 0) throw new primordials.TypeError("a key cannot have a length of 0");
    return p.length;
  },
});

// ---- AES ----

function checkAESLength(bits) {
  if (bits !== 128 && bits !== 192 && bits !== 256) throw failed(`an AES key has 128, 192 or 256 bits, not ${bits}`);
}

function registerAES(name, own, usages, use) {
  const mode = primordials.StringPrototypeSlice(name, 4);
  register({
    __proto__: null,
    ...own,
    name,
    params: {
      __proto__: null, ...own.params, generateKey: params.aesKey, importKey: null, exportKey: null, keyLength: params.aesKey,
    },
    describe: (d) => ({ name, length: d.length }),
    generateKey(p, extractable, wanted) {
      requireUsages(wanted, usages, `an ${name} key`);
      checkAESLength(p.length);
      return new KeyState("secret", this, { __proto__: null, length: p.length }, randomBytes(p.length));
    },
    importKey(format, data, p, extractable, wanted) {
      requireUsages(wanted, usages, `an ${name} key`);
      const bytes = importSecret(format, data, extractable, wanted, use, name, (alg, k) => {
        if (alg !== `A${lengthOf(k) * 8}${mode}`) throw badJwk("alg");
      });
      const length = lengthOf(bytes) * 8;
      if (length !== 128 && length !== 192 && length !== 256) {
        throw new DOMException(`an AES key has 128, 192 or 256 bits, not ${length}`, "DataError");
      }
      return new KeyState("secret", this, { __proto__: null, length }, bytes);
    },
    exportKey: (format, key) => exportSecret(format, key, `A${key.details.length}${mode}`),
    keyLength(p) {
      checkAESLength(p.length);
      return p.length;
    },
  });
}

const cipherUsages = listOf(["encrypt", "decrypt", "wrapKey", "unwrapKey"]);

const ctr = (p, key, data) =>
  work(isLong(data), "OperationError", [subtleOps.CTR, key.bytes, p.counter, p.length, data]);
registerAES("AES-CTR", {
  params: { encrypt: params.ctr, decrypt: params.ctr }, encrypt: ctr, decrypt: ctr,
}, cipherUsages, "enc");

registerAES("AES-CBC", {
  params: { encrypt: params.cbc, decrypt: params.cbc },
  encrypt: (p, key, data) => work(isLong(data), "OperationError", [subtleOps.ENCRYPT_CBC, key.bytes, p.iv, data]),
  decrypt: (p, key, data) => work(isLong(data), "OperationError", [subtleOps.DECRYPT_CBC, key.bytes, p.iv, data]),
}, cipherUsages, "enc");

const gcm = (op) => (p, key, data) => work(isLong(data) || isLong(p.iv) || isLong(p.additional), "OperationError",
  [op, key.bytes, p.iv, p.additional, p.tag, data]);
registerAES("AES-GCM", {
  params: { encrypt: params.gcm, decrypt: params.gcm },
  encrypt: gcm(subtleOps.ENCRYPT_GCM), decrypt: gcm(subtleOps.DECRYPT_GCM),
}, cipherUsages, "enc");

registerAES("AES-KW", {
  params: { wrapKey: null, unwrapKey: null },
  wrapKey: (p, key, data) => work(isLong(data), "OperationError", [subtleOps.WRAP_KW, key.bytes, data]),
  unwrapKey: (p, key, data) => work(isLong(data), "OperationError", [subtleOps.UNWRAP_KW, key.bytes, data]),
}, listOf(["wrapKey", "unwrapKey"]), "enc");

// ---- derivation ----

const deriveUsages = listOf(["deriveKey", "deriveBits"]);
crypto.deriveUsages = deriveUsages;

function registerDerivation(name, read, deriveBits) {
  register({
    __proto__: null,
    name,
    params: { __proto__: null, deriveBits: read, importKey: null, keyLength: null },
    describe: () => ({ name }),
    deriveBits(p, key, length) {
      if (length === null || length % 8 !== 0) throw failed(`${name} derives whole bytes: the length is not a multiple of 8`);
      return deriveBits(p, key, length / 8);
    },
    importKey(format, data, p, extractable, usages) {
      if (format !== "raw") throw notSupported(`${name} as ${format}`);
      requireUsages(usages, deriveUsages, `an ${name} key`);
      if (extractable) throw new DOMException(`an ${name} key cannot be extractable`, "SyntaxError");
      return new KeyState("secret", this, { __proto__: null }, data);
    },
    keyLength: () => null,
  });
}

registerDerivation("HKDF", params.hkdf, (p, key, n) =>
  work(isLong(key.bytes) || isLong(p.info) || isLong(p.salt), "OperationError",
    [subtleOps.HKDF, p.hash, key.bytes, p.salt, p.info, n]));

// AT_ONCE is the maximum of PBKDF2's iterations times the bytes for which the code computes synchronously.
const AT_ONCE = 2048;

registerDerivation("PBKDF2", params.pbkdf2, (p, key, n) => {
  if (p.iterations === 0) throw failed("PBKDF2 needs at least one iteration");
  if (n === 0) return new Uint8Array(0);
  const long = p.iterations * n > AT_ONCE || isLong(key.bytes) || isLong(p.salt);
  return work(long, "OperationError", [subtleOps.PBKDF2, p.hash, key.bytes, p.salt, p.iterations, n]);
});

crypto.failed = failed;
