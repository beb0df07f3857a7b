// crypto/subtle.js is SubtleCrypto. Its methods convert their arguments, normalize the algorithm and check the key.
// The algorithm does the rest.

"use strict";

const {
  JSONParse, JSONStringify, ObjectSetPrototypeOf, PromiseReject, PromiseResolve, TypeError, TypedArrayPrototypeGetBuffer,
  TypedArrayPrototypeGetTag, lengthOf, sealedProto, subarray,
} = primordials;
const {
  DOMException, TOKEN, askOps, copyBytes, defineInterface, illegalConstructor, illegalInvocation, isBufferSource, isObject,
  liveBytes, newCapability, requireArguments, toBufferSource, toEnum, toUnsignedLong, viewBytes,
} = internal;
const { crypto } = internal;
const { after, has, isLater, keyOf, newKey, normalize, notSupported, readUsages, requireSome, seal, toAlgorithm } = crypto;
const { ask, decode, encode } = host;

const PORTION = 1048576; // bytes that are compared in one call

const formats = ["raw", "spki", "pkcs8", "jwk"];

function invalidAccess(message) {
  return new DOMException(message, "InvalidAccessError");
}

// ---- import and export of keys ----

class Pair {
  privateKey;
  publicKey;
}
sealedProto(Pair);

// newPair makes a pair of two keys. generateKey seals the private key.
crypto.newPair = (privateKey, privateUsages, publicKey, publicUsages) => {
  const pair = new Pair();
  pair.privateKey = seal(privateKey, false, privateUsages);
  pair.publicKey = seal(publicKey, true, publicUsages);
  return pair;
};

function toKey(value, what) {
  if (!internal.isCryptoKey(value)) throw new TypeError(`${what} is not a CryptoKey`);
  return keyOf(value);
}

// usable checks that a key belongs to the algorithm and allows this usage.
function usable(p, key, usage) {
  if (key.algorithm !== p.algorithm) throw invalidAccess(`the key is one of ${key.algorithm.name}, not ${p.algorithm.name}`);
  if (!has(key.usages, usage)) throw invalidAccess(`the key cannot be used for ${usage}`);
  return key;
}

function finishKey(made, extractable, usages) {
  return after(made, (key) => newKey(requireSome(seal(key, extractable, usages))));
}

function importBytes(format, data, p, extractable, usages) {
  return finishKey(p.algorithm.importKey(format, data, p, extractable, usages), extractable, usages);
}

function exportOf(format, key) {
  if (key.algorithm.exportKey === undefined) throw notSupported(`exporting an ${key.algorithm.name} key`);
  if (!key.extractable) throw invalidAccess("the key is not extractable");
  return key.algorithm.exportKey(format, key);
}

// jwkText returns the JSON of a key. It removes the prototypes, because handler code could define toJSON on them.
function jwkText(jwk) {
  ObjectSetPrototypeOf(jwk.key_ops, null);
  return encode(JSONStringify(ObjectSetPrototypeOf(jwk, null)));
}

// parseJwk reads the JSON of an unwrapped key.
function parseJwk(bytes) {
  let value;
  try {
    value = JSONParse(decode(bytes, false));
  } catch {
    throw new DOMException("the unwrapped key is not JSON", "DataError");
  }
  if (!isObject(value)) throw new DOMException("the unwrapped key is not a JSON Web Key", "DataError");
  const jwk = crypto.readJwk(ObjectSetPrototypeOf(value, null));
  if (jwk.kty === undefined) throw crypto.badJwk("kty");
  return jwk;
}

// normalizeEither is for wrapKey and unwrapKey. Ciphers without these operations encrypt or decrypt instead.
function normalizeEither(algorithm, own, other) {
  try {
    return normalize(algorithm, own);
  } catch {
    return normalize(algorithm, other);
  }
}

// ---- the methods ----

// toResult turns bytes into an ArrayBuffer. The bytes are new from Go or a copy, so they have their own buffer.
function toResult(value) {
  return TypedArrayPrototypeGetTag(value) === "Uint8Array" ? TypedArrayPrototypeGetBuffer(value) : value;
}

const operations = {
  __proto__: null,
  encrypt(algorithm, key, data) {
    return cipher(algorithm, key, data, "encrypt");
  },
  decrypt(algorithm, key, data) {
    return cipher(algorithm, key, data, "decrypt");
  },
  sign(algorithm, key, data) {
    return cipher(algorithm, key, data, "sign");
  },
  verify(algorithm, key, signature, data) {
    const identifier = toAlgorithm(algorithm);
    const k = toKey(key, "verify: the key");
    toBufferSource(signature, "verify: the signature");
    toBufferSource(data, "verify: the data");
    const p = normalize(identifier, "verify");
    const given = copyBytes(signature);
    return p.algorithm.verify(p, usable(p, k, "verify"), given, liveBytes(data));
  },
  digest(algorithm, data) {
    const identifier = toAlgorithm(algorithm);
    toBufferSource(data, "digest: the data");
    const p = normalize(identifier, "digest");
    return p.algorithm.digest(p, liveBytes(data));
  },
  generateKey(algorithm, extractable, keyUsages) {
    const identifier = toAlgorithm(algorithm);
    const canExtract = !!extractable;
    const usages = readUsages(keyUsages);
    const p = normalize(identifier, "generateKey");
    return after(p.algorithm.generateKey(p, canExtract, usages), (made) => {
      if (made.privateKey === undefined) return newKey(requireSome(seal(made, canExtract, usages)));
      made.privateKey.extractable = canExtract;
      requireSome(made.privateKey);
      return { privateKey: newKey(made.privateKey), publicKey: newKey(made.publicKey) };
    });
  },
  deriveKey(algorithm, baseKey, derivedKeyType, extractable, keyUsages) {
    const identifier = toAlgorithm(algorithm);
    const key = toKey(baseKey, "deriveKey: the key");
    const derived = toAlgorithm(derivedKeyType);
    const canExtract = !!extractable;
    const usages = readUsages(keyUsages);
    const p = normalize(identifier, "deriveBits");
    const forImport = normalize(derived, "importKey");
    const forLength = normalize(derived, "keyLength");
    usable(p, key, "deriveKey");
    const length = forLength.algorithm.keyLength(forLength);
    return after(p.algorithm.deriveBits(p, key, length),
      (secret) => importBytes("raw", secret, forImport, canExtract, usages));
  },
  deriveBits(algorithm, baseKey, length = null) {
    const identifier = toAlgorithm(algorithm);
    const key = toKey(baseKey, "deriveBits: the key");
    const bits = length === null ? null : toUnsignedLong(length);
    const p = normalize(identifier, "deriveBits");
    return p.algorithm.deriveBits(p, usable(p, key, "deriveBits"), bits);
  },
  importKey(format, keyData, algorithm, extractable, keyUsages) {
    const kind = toEnum(format, formats, "format");
    const isBytes = isBufferSource(keyData);
    const jwk = isBytes ? null : toJwk(keyData);
    const identifier = toAlgorithm(algorithm);
    const canExtract = !!extractable;
    const usages = readUsages(keyUsages);
    const p = normalize(identifier, "importKey");
    if ((kind === "jwk") === isBytes) {
      throw new TypeError(`importKey: the key data of format ${kind} is ${isBytes ? "not a JSON Web Key" : "not bytes"}`);
    }
    return importBytes(kind, isBytes ? copyBytes(keyData) : jwk, p, canExtract, usages);
  },
  exportKey(format, key) {
    const kind = toEnum(format, formats, "format");
    return exportOf(kind, toKey(key, "exportKey: the key"));
  },
  wrapKey(format, key, wrappingKey, wrapAlgorithm) {
    const kind = toEnum(format, formats, "format");
    const k = toKey(key, "wrapKey: the key");
    const wrapping = toKey(wrappingKey, "wrapKey: the wrapping key");
    const p = normalizeEither(toAlgorithm(wrapAlgorithm), "wrapKey", "encrypt");
    usable(p, wrapping, "wrapKey");
    return after(exportOf(kind, k), (exported) => {
      const bytes = kind === "jwk" ? jwkText(exported) : exported;
      const { algorithm } = p;
      return algorithm.wrapKey !== undefined ? algorithm.wrapKey(p, wrapping, bytes) : algorithm.encrypt(p, wrapping, bytes);
    });
  },
  unwrapKey(format, wrappedKey, unwrappingKey, unwrapAlgorithm, unwrappedKeyAlgorithm, extractable, keyUsages) {
    const kind = toEnum(format, formats, "format");
    toBufferSource(wrappedKey, "unwrapKey: the wrapped key");
    const unwrapping = toKey(unwrappingKey, "unwrapKey: the unwrapping key");
    const identifier = toAlgorithm(unwrapAlgorithm);
    const keyIdentifier = toAlgorithm(unwrappedKeyAlgorithm);
    const canExtract = !!extractable;
    const usages = readUsages(keyUsages);
    const p = normalizeEither(identifier, "unwrapKey", "decrypt");
    const forImport = normalize(keyIdentifier, "importKey");
    const data = liveBytes(wrappedKey);
    usable(p, unwrapping, "unwrapKey");
    const { algorithm } = p;
    const opened = algorithm.unwrapKey !== undefined ? algorithm.unwrapKey(p, unwrapping, data) : algorithm.decrypt(p, unwrapping, data);
    return after(opened, (bytes) =>
      importBytes(kind, kind === "jwk" ? parseJwk(bytes) : bytes, forImport, canExtract, usages));
  },
};

// cipher is the common part of encrypt, decrypt and sign.
function cipher(algorithm, key, data, operation) {
  const identifier = toAlgorithm(algorithm);
  const k = toKey(key, `${operation}: the key`);
  toBufferSource(data, `${operation}: the data`);
  const p = normalize(identifier, operation);
  return p.algorithm[operation](p, usable(p, k, operation), liveBytes(data));
}

function toJwk(value) {
  if (!isObject(value) && value !== undefined && value !== null) {
    throw new TypeError("importKey: the key data is neither bytes nor a JSON Web Key");
  }
  return crypto.readJwk(value ?? { __proto__: null });
}

// settled returns the promise of a result.
function settled(result) {
  if (!isLater(result)) return PromiseResolve(toResult(result));
  const at = internal.stackHere();
  const capability = newCapability();
  result.on((value) => { capability.resolve(toResult(value)); }, (error) => { capability.reject(internal.withStack(at, error)); });
  return capability.promise;
}

function run(self, needed, given, name, operation) {
  try {
    if (!isSubtle(self)) throw illegalInvocation("SubtleCrypto");
    requireArguments(given, needed, name);
    return settled(operation());
  } catch (error) {
    return PromiseReject(error);
  }
}

let isSubtle;

class SubtleCrypto {
  #brand = true;
  constructor(token = undefined) {
    if (token !== TOKEN) throw illegalConstructor();
  }
  static {
    isSubtle = (value) => isObject(value) && #brand in value;
  }
  encrypt(algorithm, key, data) {
    return run(this, 3, arguments.length, "encrypt", () => operations.encrypt(algorithm, key, data));
  }
  decrypt(algorithm, key, data) {
    return run(this, 3, arguments.length, "decrypt", () => operations.decrypt(algorithm, key, data));
  }
  sign(algorithm, key, data) {
    return run(this, 3, arguments.length, "sign", () => operations.sign(algorithm, key, data));
  }
  verify(algorithm, key, signature, data) {
    return run(this, 4, arguments.length, "verify", () => operations.verify(algorithm, key, signature, data));
  }
  digest(algorithm, data) {
    return run(this, 2, arguments.length, "digest", () => operations.digest(algorithm, data));
  }
  generateKey(algorithm, extractable, keyUsages) {
    return run(this, 3, arguments.length, "generateKey", () => operations.generateKey(algorithm, extractable, keyUsages));
  }
  deriveKey(algorithm, baseKey, derivedKeyType, extractable, keyUsages) {
    return run(this, 5, arguments.length, "deriveKey",
      () => operations.deriveKey(algorithm, baseKey, derivedKeyType, extractable, keyUsages));
  }
  deriveBits(algorithm, baseKey, length = null) {
    return run(this, 2, arguments.length, "deriveBits", () => operations.deriveBits(algorithm, baseKey, length));
  }
  importKey(format, keyData, algorithm, extractable, keyUsages) {
    return run(this, 5, arguments.length, "importKey",
      () => operations.importKey(format, keyData, algorithm, extractable, keyUsages));
  }
  exportKey(format, key) {
    return run(this, 2, arguments.length, "exportKey", () => operations.exportKey(format, key));
  }
  wrapKey(format, key, wrappingKey, wrapAlgorithm) {
    return run(this, 4, arguments.length, "wrapKey", () => operations.wrapKey(format, key, wrappingKey, wrapAlgorithm));
  }
  unwrapKey(format, wrappedKey, unwrappingKey, unwrapAlgorithm, unwrappedKeyAlgorithm, extractable, keyUsages) {
    return run(this, 7, arguments.length, "unwrapKey", () => operations.unwrapKey(format, wrappedKey, unwrappingKey,
      unwrapAlgorithm, unwrappedKeyAlgorithm, extractable, keyUsages));
  }
  // timingSafeEqual is not in the standard; Workers has it.
  timingSafeEqual(a, b) {
    if (!isSubtle(this)) throw illegalInvocation("SubtleCrypto");
    requireArguments(arguments.length, 2, "timingSafeEqual");
    const left = viewBytes(toBufferSource(a, "timingSafeEqual: the first argument"));
    const right = viewBytes(toBufferSource(b, "timingSafeEqual: the second argument"));
    if (lengthOf(left) !== lengthOf(right)) throw new TypeError("timingSafeEqual: the arguments differ in length");
    const n = lengthOf(left);
    let equal = true;
    for (let at = 0; at < n; at += PORTION) { // compares all portions, whatever the results are
      const end = at + PORTION < n ? at + PORTION : n;
      if (!ask(askOps.TIMING_SAFE_EQUAL, subarray(left, at, end), subarray(right, at, end))) equal = false;
    }
    return equal;
  }
}
defineInterface(SubtleCrypto, "SubtleCrypto");
crypto.subtle = new SubtleCrypto(TOKEN);
