// 76_crypto_okp.js is Ed25519 and X25519.

"use strict";

const { Uint8Array, lengthOf, subarray } = primordials;
const { DOMException, subtleOps } = internal;
const { crypto } = internal;
const {
  KeyState, after, badJwk, checkExport, checkJwk, chosen, isLong, jwkBytes, params, registerPair, requireType, requireUsages,
  work,
} = crypto;

const SIZE = 32;

function newKey(algorithm, type, bytes) {
  return new KeyState(type, algorithm, { __proto__: null }, bytes);
}

function generate(algorithm, usages) {
  requireUsages(usages, algorithm.pairUsages, `an ${algorithm.name} key`);
  const pair = work(false, "OperationError", [subtleOps.OKP_GENERATE, algorithm.name]);
  return crypto.newPair(newKey(algorithm, "private", pair[0]), chosen(usages, algorithm.privateUsages),
    newKey(algorithm, "public", pair[1]), chosen(usages, algorithm.publicUsages));
}

function importJwk(algorithm, jwk, extractable, usages) {
  const isPrivate = jwk.d !== undefined;
  requireUsages(usages, isPrivate ? algorithm.privateUsages : algorithm.publicUsages, `this ${algorithm.name} key`);
  checkJwk(jwk, "OKP", algorithm.use, extractable, usages);
  if (jwk.crv !== algorithm.name) throw badJwk("crv");
  if (algorithm.name === "Ed25519" && jwk.alg !== undefined && jwk.alg !== "Ed25519" && jwk.alg !== "EdDSA") throw badJwk("alg");
  const x = jwkBytes(jwk, "x", SIZE);
  if (!isPrivate) return newKey(algorithm, "public", x);
  return newKey(algorithm, "private", work(false, "DataError",
    [subtleOps.OKP_IMPORT_SEED, algorithm.name, jwkBytes(jwk, "d", SIZE), x]));
}

function importKey(algorithm, format, data, extractable, usages) {
  if (format === "jwk") return importJwk(algorithm, data, extractable, usages);
  const type = format === "pkcs8" ? "private" : "public";
  requireUsages(usages, type === "private" ? algorithm.privateUsages : algorithm.publicUsages, `this ${algorithm.name} key`);
  if (format !== "raw") return newKey(algorithm, type, work(false, "DataError", [subtleOps.OKP_IMPORT, format, algorithm.name, data]));
  if (lengthOf(data) !== SIZE) throw new DOMException(`an ${algorithm.name} key has ${SIZE} bytes`, "DataError");
  return newKey(algorithm, "public", data);
}

function exportKey(format, key) {
  if (format === "jwk") {
    const isPrivate = key.type === "private";
    const x = internal.toBase64url(isPrivate ? subarray(key.bytes, SIZE) : key.bytes);
    const ops = crypto.toArray(key.usages);
    const crv = key.algorithm.name;
    const head = crv === "Ed25519" ? { alg: crv, crv } : { crv };
    if (!isPrivate) return { ...head, ext: key.extractable, key_ops: ops, kty: "OKP", x };
    return { ...head, d: internal.toBase64url(subarray(key.bytes, 0, SIZE)), ext: key.extractable, key_ops: ops, kty: "OKP", x };
  }
  checkExport(format, key);
  if (format === "raw") return new Uint8Array(key.bytes);
  return work(false, "OperationError", [subtleOps.OKP_EXPORT, format, key.algorithm.name, key.bytes]);
}

function registerOKP(name, own, privateUsages, publicUsages, use) {
  registerPair(name, own, privateUsages, publicUsages, use, {
    __proto__: null,
    params: { __proto__: null, generateKey: null, importKey: null },
    describe: () => ({ name }),
    generateKey(p, extractable, usages) {
      return generate(this, usages);
    },
    importKey(format, data, p, extractable, usages) {
      return importKey(this, format, data, extractable, usages);
    },
    exportKey,
  });
}

registerOKP("Ed25519", {
  params: { sign: null, verify: null },
  sign(p, key, data) {
    requireType(key, "private");
    return work(isLong(data), "OperationError", [subtleOps.SIGN_ED25519, key.bytes, data]);
  },
  verify(p, key, signature, data) {
    requireType(key, "public");
    return work(isLong(data), "OperationError", [subtleOps.VERIFY_ED25519, key.bytes, signature, data]);
  },
}, ["sign"], ["verify"], "sig");

registerOKP("X25519", {
  params: { deriveBits: params.publicKey },
  deriveBits(p, key, length) {
    crypto.checkPeer(key, p.publicKey);
    return after(work(false, "OperationError", [subtleOps.X25519, key.bytes, p.publicKey.bytes]),
      (secret) => crypto.firstBits(secret, length));
  },
}, ["deriveKey", "deriveBits"], [], "enc");
