// crypto/okp.js is Ed25519, X25519, Ed448 and X448.

"use strict";

const { Uint8Array, lengthOf, subarray } = primordials;
const { DOMException, subtleOps } = internal;
const { crypto } = internal;
const {
  KeyState, after, badJwk, checkExport, checkJwk, chosen, isLong, jwkBytes, params, registerPair, requireType, requireUsages,
  work,
} = crypto;

// SIZES has the number of bytes of a public key, and of the secret of a private key.
const SIZES = { __proto__: null, Ed25519: 32, X25519: 32, Ed448: 57, X448: 56 };

// isSigning is true for Ed25519 and Ed448. Their keys have the name in "alg".
const isSigning = (name) => name === "Ed25519" || name === "Ed448";

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
  const { name } = algorithm;
  if (isSigning(name) && jwk.alg !== undefined && jwk.alg !== name && jwk.alg !== "EdDSA") throw badJwk("alg");
  const x = jwkBytes(jwk, "x", SIZES[name]);
  if (!isPrivate) return newKey(algorithm, "public", x);
  return newKey(algorithm, "private", work(false, "DataError",
    [subtleOps.OKP_IMPORT_SEED, name, jwkBytes(jwk, "d", SIZES[name]), x]));
}

function importKey(algorithm, format, data, extractable, usages) {
  if (format === "jwk") return importJwk(algorithm, data, extractable, usages);
  const type = format === "pkcs8" ? "private" : "public";
  requireUsages(usages, type === "private" ? algorithm.privateUsages : algorithm.publicUsages, `this ${algorithm.name} key`);
  if (format !== "raw") return newKey(algorithm, type, work(false, "DataError", [subtleOps.OKP_IMPORT, format, algorithm.name, data]));
  const size = SIZES[algorithm.name];
  if (lengthOf(data) !== size) throw new DOMException(`an ${algorithm.name} key has ${size} bytes`, "DataError");
  return newKey(algorithm, "public", data);
}

function exportKey(format, key) {
  if (format === "jwk") {
    const isPrivate = key.type === "private";
    const crv = key.algorithm.name;
    const size = SIZES[crv];
    const x = internal.toBase64url(isPrivate ? subarray(key.bytes, size) : key.bytes);
    const ops = crypto.toArray(key.usages);
    const head = isSigning(crv) ? { alg: crv, crv } : { crv };
    if (!isPrivate) return { ...head, ext: key.extractable, key_ops: ops, kty: "OKP", x };
    return { ...head, d: internal.toBase64url(subarray(key.bytes, 0, size)), ext: key.extractable, key_ops: ops, kty: "OKP", x };
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

// noContext replaces the optional context of an Ed448 signature when there is none.
const noContext = new Uint8Array(0);

registerOKP("Ed448", {
  params: { sign: params.context, verify: params.context },
  sign(p, key, data) {
    requireType(key, "private");
    return work(true, "OperationError", [subtleOps.SIGN_ED448, key.bytes, data, p.context ?? noContext]);
  },
  verify(p, key, signature, data) {
    requireType(key, "public");
    return work(true, "OperationError", [subtleOps.VERIFY_ED448, key.bytes, signature, data, p.context ?? noContext]);
  },
}, ["sign"], ["verify"], "sig");

function registerX(name, op) {
  registerOKP(name, {
    params: { deriveBits: params.publicKey },
    deriveBits(p, key, length) {
      crypto.checkPeer(key, p.publicKey);
      return after(work(name === "X448", "OperationError", [op, key.bytes, p.publicKey.bytes]),
        (secret) => crypto.firstBits(secret, length));
    },
  }, ["deriveKey", "deriveBits"], [], "enc");
}

registerX("X25519", subtleOps.X25519);
registerX("X448", subtleOps.X448);
