// crypto/rsa.js is RSASSA-PKCS1-v1_5, RSA-PSS and RSA-OAEP.

"use strict";

const { Uint8Array, lengthOf } = primordials;
const { DOMException, subtleOps } = internal;
const { crypto } = internal;
const {
  KeyState, after, badJwk, checkJwk, chosen, isLong, jwkBytes, notSupported, params, registerPair, requireUsages, work,
} = crypto;

const hashBits = { __proto__: null, "SHA-1": "1", "SHA-256": "256", "SHA-384": "384", "SHA-512": "512" };

// algOf returns the alg of a JSON Web Key.
function algOf(name, hash) {
  if (name === "RSA-PSS") return `PS${hashBits[hash]}`;
  if (name === "RSASSA-PKCS1-v1_5") return `RS${hashBits[hash]}`;
  return hash === "SHA-1" ? "RSA-OAEP" : `RSA-OAEP-${hashBits[hash]}`;
}

// keyOfParts makes a key from the parts that Go returned: its DER, the length of its modulus, its public exponent.
function keyOfParts(algorithm, type, hash, parts) {
  const bits = (parts[1][2] << 8) | parts[1][3];
  return new KeyState(type, algorithm, { __proto__: null, hash, modulusLength: bits, publicExponent: parts[2] }, parts[0]);
}

function importJwk(algorithm, jwk, p, extractable, usages) {
  const isPrivate = jwk.d !== undefined;
  requireUsages(usages, isPrivate ? algorithm.privateUsages : algorithm.publicUsages, `this ${algorithm.name} key`);
  checkJwk(jwk, "RSA", algorithm.use, extractable, usages);
  if (jwk.alg !== undefined && jwk.alg !== algOf(algorithm.name, p.hash)) throw badJwk("alg");
  const args = [subtleOps.RSA_IMPORT_PARTS, jwkBytes(jwk, "n"), jwkBytes(jwk, "e"), null, null, null, null, null, null];
  if (isPrivate) {
    if (jwk.oth !== undefined) throw notSupported("an RSA key with more than two primes");
    const members = ["d", "p", "q", "dp", "dq", "qi"];
    for (let i = 0; i < members.length; i++) args[3 + i] = jwkBytes(jwk, members[i]);
  }
  return after(work(isPrivate && lengthOf(args[1]) > LONG_MODULUS, "DataError", args),
    (parts) => keyOfParts(algorithm, isPrivate ? "private" : "public", p.hash, parts));
}

// LONG_MODULUS is the number of bytes from which the check of a private key takes long. LONG_DER is the same limit
// for DER.
const LONG_MODULUS = 256;
const LONG_DER = 1300;

function importDER(algorithm, format, data, p, usages) {
  const type = format === "spki" ? "public" : "private";
  requireUsages(usages, type === "public" ? algorithm.publicUsages : algorithm.privateUsages, `this ${algorithm.name} key`);
  return after(work(type === "private" && lengthOf(data) > LONG_DER, "DataError", [subtleOps.RSA_IMPORT, format, data]),
    (parts) => keyOfParts(algorithm, type, p.hash, parts));
}

function generate(algorithm, p, usages) {
  requireUsages(usages, algorithm.pairUsages, `an ${algorithm.name} key`);
  const args = [subtleOps.RSA_GENERATE, p.modulusLength, p.publicExponent];
  return after(work(true, "OperationError", args), (parts) => {
    const privateKey = keyOfParts(algorithm, "private", p.hash, parts);
    const publicKey = keyOfParts(algorithm, "public", p.hash, parts);
    publicKey.bytes = parts[3];
    return crypto.newPair(privateKey, chosen(usages, algorithm.privateUsages), publicKey, chosen(usages, algorithm.publicUsages));
  });
}

function exportJwk(key) {
  const isPrivate = key.type === "private";
  const parts = work(false, "OperationError", [subtleOps.RSA_PARTS, key.bytes, isPrivate]);
  const text = (i) => internal.toBase64url(parts[i]);
  const alg = algOf(key.algorithm.name, key.details.hash);
  const ops = crypto.toArray(key.usages);
  if (!isPrivate) return { alg, e: text(1), ext: key.extractable, key_ops: ops, kty: "RSA", n: text(0) };
  return {
    alg, d: text(2), dp: text(5), dq: text(6), e: text(1), ext: key.extractable, key_ops: ops, kty: "RSA", n: text(0),
    p: text(3), q: text(4), qi: text(7),
  };
}

// checkExport is for all kinds of keys. spki is the format of public keys, and pkcs8 of private ones.
crypto.checkExport = (format, key) => {
  const type = format === "spki" || format === "raw" ? "public" : "private";
  if (key.type !== type) throw new DOMException(`a ${key.type} key has no form ${format}`, "InvalidAccessError");
};

function requireType(key, type) {
  if (key.type !== type) throw new DOMException(`the key is not a ${type} key`, "InvalidAccessError");
}
crypto.requireType = requireType;

function registerRSA(name, own, privateUsages, publicUsages, use) {
  registerPair(name, own, privateUsages, publicUsages, use, {
    __proto__: null,
    params: { __proto__: null, generateKey: params.rsaKey, importKey: params.hashed },
    describe: (d) => ({
      name, modulusLength: d.modulusLength, publicExponent: new Uint8Array(d.publicExponent), hash: { name: d.hash },
    }),
    generateKey(p, extractable, usages) {
      return generate(this, p, usages);
    },
    importKey(format, data, p, extractable, usages) {
      if (format === "jwk") return importJwk(this, data, p, extractable, usages);
      if (format === "raw") throw notSupported(`${name} as raw`);
      return importDER(this, format, data, p, usages);
    },
    exportKey(format, key) {
      if (format === "jwk") return exportJwk(key);
      if (format === "raw") throw notSupported(`${name} as raw`);
      crypto.checkExport(format, key);
      return work(false, "OperationError", [subtleOps.RSA_EXPORT, format, key.bytes]);
    },
  });
}

// A signature takes a millisecond or more. A verification takes almost no time.
const slow = (key) => key.details.modulusLength > 3072;

registerRSA("RSASSA-PKCS1-v1_5", {
  params: { sign: null, verify: null },
  sign(p, key, data) {
    requireType(key, "private");
    return work(true, "OperationError", [subtleOps.SIGN_PKCS1, key.details.hash, key.bytes, data]);
  },
  verify(p, key, signature, data) {
    requireType(key, "public");
    return work(isLong(data) || slow(key), "OperationError",
      [subtleOps.VERIFY_PKCS1, key.details.hash, key.bytes, signature, data]);
  },
}, ["sign"], ["verify"], "sig");

registerRSA("RSA-PSS", {
  params: { sign: params.pss, verify: params.pss },
  sign(p, key, data) {
    requireType(key, "private");
    return work(true, "OperationError", [subtleOps.SIGN_PSS, key.details.hash, key.bytes, p.saltLength, data]);
  },
  verify(p, key, signature, data) {
    requireType(key, "public");
    return work(isLong(data) || slow(key), "OperationError",
      [subtleOps.VERIFY_PSS, key.details.hash, key.bytes, p.saltLength, signature, data]);
  },
}, ["sign"], ["verify"], "sig");

registerRSA("RSA-OAEP", {
  params: { encrypt: params.oaep, decrypt: params.oaep },
  encrypt(p, key, data) {
    requireType(key, "public");
    return work(slow(key) || isLong(p.label), "OperationError", [subtleOps.ENCRYPT_OAEP, key.details.hash, key.bytes, p.label, data]);
  },
  decrypt(p, key, data) {
    requireType(key, "private");
    return work(true, "OperationError", [subtleOps.DECRYPT_OAEP, key.details.hash, key.bytes, p.label, data]);
  },
}, ["decrypt", "unwrapKey"], ["encrypt", "wrapKey"], "enc");
