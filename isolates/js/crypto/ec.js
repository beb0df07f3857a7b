// crypto/ec.js is ECDSA and ECDH on the curves P-256, P-384 and P-521.

"use strict";

const { TypedArrayPrototypeSet, Uint8Array, subarray } = primordials;
const { DOMException, subtleOps } = internal;
const { crypto } = internal;
const {
  KeyState, after, badJwk, checkExport, checkJwk, chosen, isLong, jwkBytes, notSupported, params, registerPair, requireType,
  requireUsages, work,
} = crypto;

const scalarSizes = { __proto__: null, "P-256": 32, "P-384": 48, "P-521": 66 };
const jwkAlgs = { __proto__: null, "P-256": "ES256", "P-384": "ES384", "P-521": "ES512" };

// slow is true for the larger curves, because their work takes longer than a transfer to another thread.
const slow = (curve) => curve !== "P-256";

function newKey(algorithm, type, namedCurve, bytes) {
  return new KeyState(type, algorithm, { __proto__: null, namedCurve }, bytes);
}

// pointOf returns the uncompressed point of a key. In a private key it follows the scalar.
function pointOf(key) {
  return key.type === "public" ? key.bytes : subarray(key.bytes, scalarSizes[key.details.namedCurve]);
}

function generate(algorithm, p, usages) {
  requireUsages(usages, algorithm.pairUsages, `an ${algorithm.name} key`);
  const curve = p.namedCurve;
  if (scalarSizes[curve] === undefined) throw notSupported(`the curve ${internal.inspectBrief(curve)}`);
  return after(work(slow(curve), "OperationError", [subtleOps.EC_GENERATE, curve]), (pair) =>
    crypto.newPair(newKey(algorithm, "private", curve, pair[0]), chosen(usages, algorithm.privateUsages),
      newKey(algorithm, "public", curve, pair[1]), chosen(usages, algorithm.publicUsages)));
}

function requireCurve(curve) {
  if (scalarSizes[curve] === undefined) throw new DOMException(`the curve ${internal.inspectBrief(curve)} is unknown`, "DataError");
}

function importJwk(algorithm, jwk, curve, extractable, usages) {
  const isPrivate = jwk.d !== undefined;
  requireUsages(usages, isPrivate ? algorithm.privateUsages : algorithm.publicUsages, `this ${algorithm.name} key`);
  checkJwk(jwk, "EC", algorithm.use, extractable, usages);
  if (jwk.crv !== curve) throw badJwk("crv");
  requireCurve(curve);
  if (algorithm.name === "ECDSA" && jwk.alg !== undefined && jwk.alg !== jwkAlgs[curve]) throw badJwk("alg");
  const size = scalarSizes[curve];
  const point = new Uint8Array(1 + 2 * size);
  point[0] = 4;
  TypedArrayPrototypeSet(point, jwkBytes(jwk, "x", size), 1);
  TypedArrayPrototypeSet(point, jwkBytes(jwk, "y", size), 1 + size);
  if (!isPrivate) return importPoint(algorithm, curve, point);
  const args = [subtleOps.EC_IMPORT_SCALAR, curve, jwkBytes(jwk, "d", size), point];
  return after(work(slow(curve), "DataError", args), (bytes) => newKey(algorithm, "private", curve, bytes));
}

function importPoint(algorithm, curve, point) {
  return after(work(false, "DataError", [subtleOps.EC_IMPORT_POINT, curve, point]),
    (bytes) => newKey(algorithm, "public", curve, bytes));
}

function importKey(algorithm, format, data, p, extractable, usages) {
  const curve = p.namedCurve;
  if (format === "jwk") return importJwk(algorithm, data, curve, extractable, usages);
  const type = format === "pkcs8" ? "private" : "public";
  requireUsages(usages, type === "private" ? algorithm.privateUsages : algorithm.publicUsages, `this ${algorithm.name} key`);
  requireCurve(curve);
  if (format === "raw") return importPoint(algorithm, curve, data);
  return after(work(type === "private" && slow(curve), "DataError", [subtleOps.EC_IMPORT, format, curve, data]),
    (bytes) => newKey(algorithm, type, curve, bytes));
}

function exportJwk(key) {
  const curve = key.details.namedCurve;
  const size = scalarSizes[curve];
  const point = pointOf(key);
  const x = internal.toBase64url(subarray(point, 1, 1 + size));
  const y = internal.toBase64url(subarray(point, 1 + size));
  const ops = crypto.toArray(key.usages);
  if (key.type === "public") return { crv: curve, ext: key.extractable, key_ops: ops, kty: "EC", x, y };
  const d = internal.toBase64url(subarray(key.bytes, 0, size));
  return { crv: curve, d, ext: key.extractable, key_ops: ops, kty: "EC", x, y };
}

function exportKey(format, key) {
  if (format === "jwk") return exportJwk(key);
  checkExport(format, key);
  if (format === "raw") return new Uint8Array(key.bytes);
  return work(false, "OperationError", [subtleOps.EC_EXPORT, format, key.details.namedCurve, key.bytes]);
}

function registerEC(name, own, privateUsages, publicUsages, use) {
  registerPair(name, own, privateUsages, publicUsages, use, {
    __proto__: null,
    params: { __proto__: null, generateKey: params.curve, importKey: params.curve },
    describe: (d) => ({ name, namedCurve: d.namedCurve }),
    generateKey(p, extractable, usages) {
      return generate(this, p, usages);
    },
    importKey(format, data, p, extractable, usages) {
      return importKey(this, format, data, p, extractable, usages);
    },
    exportKey,
  });
}

registerEC("ECDSA", {
  params: { sign: params.hashed, verify: params.hashed },
  sign(p, key, data) {
    requireType(key, "private");
    const curve = key.details.namedCurve;
    return work(isLong(data) || slow(curve), "OperationError", [subtleOps.SIGN_ECDSA, curve, p.hash, key.bytes, data]);
  },
  verify(p, key, signature, data) {
    requireType(key, "public");
    const curve = key.details.namedCurve;
    return work(isLong(data) || slow(curve), "OperationError",
      [subtleOps.VERIFY_ECDSA, curve, p.hash, key.bytes, signature, data]);
  },
}, ["sign"], ["verify"], "sig");

// checkPeer checks the requirements of ECDH and X25519 for the two keys.
crypto.checkPeer = (key, peer) => {
  requireType(key, "private");
  requireType(peer, "public");
  if (peer.algorithm !== key.algorithm) {
    throw new DOMException("the public key is of another algorithm", "InvalidAccessError");
  }
};

registerEC("ECDH", {
  params: { deriveBits: params.publicKey },
  deriveBits(p, key, length) {
    crypto.checkPeer(key, p.publicKey);
    const curve = key.details.namedCurve;
    if (p.publicKey.details.namedCurve !== curve) {
      throw new DOMException("the public key is on another curve", "InvalidAccessError");
    }
    return after(work(slow(curve), "OperationError", [subtleOps.ECDH, curve, key.bytes, p.publicKey.bytes]),
      (secret) => crypto.firstBits(secret, length));
  },
}, ["deriveKey", "deriveBits"], [], "enc");

