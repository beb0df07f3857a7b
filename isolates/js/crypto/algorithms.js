// crypto/algorithms.js is the registry of Web Crypto's algorithms, "normalize an algorithm" and the dictionaries of
// their parameters. The algorithms are in the files that follow.

"use strict";

const {
  List, StringPrototypeCharCodeAt, StringPrototypeToUpperCase, TypeError, TypedArrayPrototypeGetTag,
} = primordials;
const {
  DOMException, copyBytes, isObject, toBufferSource, toDOMString, toInteger, toUnsignedLong, toUnsignedShort,
} = internal;

// crypto has the functions that the files of Web Crypto share.
const crypto = internal.crypto = { __proto__: null };

const algorithms = { __proto__: null };

// register adds an algorithm. It is an object with its name, with params, and with the operations as functions.
// params has the function that reads the parameters of each operation (null: the operation has no parameters).
crypto.register = (algorithm) => {
  algorithms[StringPrototypeToUpperCase(algorithm.name)] = algorithm;
};

// registerPair adds an algorithm whose keys come in pairs. own has its own members, and kin has the members that it
// shares with related algorithms.
crypto.registerPair = (name, own, privateUsages, publicUsages, use, kin) => {
  crypto.register({
    __proto__: null,
    ...own,
    ...kin,
    name,
    use,
    privateUsages: crypto.listOf(privateUsages),
    publicUsages: crypto.listOf(publicUsages),
    pairUsages: crypto.listOf(privateUsages, publicUsages),
    params: { __proto__: null, ...own.params, exportKey: null, ...kin.params },
  });
};

crypto.algorithmOf = (name) => algorithms[StringPrototypeToUpperCase(name)];

function notSupported(what) {
  return new DOMException(`${what} is not supported`, "NotSupportedError");
}

// find looks up a name without regard to the case of ASCII letters. 'ſ' is not an 'S'.
function find(name) {
  for (let i = 0; i < name.length; i++) if (StringPrototypeCharCodeAt(name, i) > 127) return undefined;
  return algorithms[StringPrototypeToUpperCase(name)];
}

// toAlgorithm converts an AlgorithmIdentifier.
function toAlgorithm(value) {
  return isObject(value) ? value : toDOMString(value);
}

function nameOf(source) {
  const { name } = source;
  if (name === undefined) throw new TypeError("the algorithm has no name");
  return toDOMString(name);
}

// normalize returns the parameters of an algorithm for an operation, with the algorithm itself as `algorithm`.
function normalize(value, operation) {
  const source = isObject(value) ? value : { __proto__: null, name: value };
  const name = nameOf(source);
  const algorithm = find(name);
  const read = algorithm?.params[operation];
  if (read === undefined) throw notSupported(`the algorithm ${internal.inspectBrief(name)} for ${operation}`);
  if (read === null) return { __proto__: null, algorithm };
  nameOf(source); // the dictionary of the parameters has the name too, so it is converted again
  const params = read(source);
  params.algorithm = algorithm;
  return params;
}

// ---- members ----

function required(source, member) {
  const value = source[member];
  if (value === undefined) throw new TypeError(`the algorithm has no ${member}`);
  return value;
}

function bytesOf(source, member) {
  return toBufferSource(required(source, member), member);
}

function octet(value, what) {
  return toInteger(value, 8, false, "enforce", what);
}

function hashOf(source) {
  return toAlgorithm(required(source, "hash"));
}

function digestName(identifier) {
  return normalize(identifier, "hash").algorithm.name;
}

// ---- dictionaries; the code reads all members in the order of their names, and then uses them ----

const params = {
  __proto__: null,
  aesKey(source) {
    return { __proto__: null, length: toUnsignedShort(required(source, "length"), "enforce", "length") };
  },
  cbc(source) {
    return { __proto__: null, iv: copyBytes(bytesOf(source, "iv")) };
  },
  context(source) {
    const { context } = source;
    return { __proto__: null, context: context === undefined ? null : copyBytes(toBufferSource(context, "context")) };
  },
  ctr(source) {
    const counter = bytesOf(source, "counter");
    const length = octet(required(source, "length"), "length");
    return { __proto__: null, counter: copyBytes(counter), length };
  },
  gcm(source) {
    const { additionalData } = source;
    if (additionalData !== undefined) toBufferSource(additionalData, "additionalData");
    const iv = bytesOf(source, "iv");
    const { tagLength } = source;
    const tag = tagLength === undefined ? 128 : octet(tagLength, "tagLength");
    return {
      __proto__: null, iv: copyBytes(iv), tag,
      additional: additionalData === undefined ? null : copyBytes(additionalData),
    };
  },
  hmac(source) {
    const hash = hashOf(source);
    const { length } = source;
    const bits = length === undefined ? undefined : toUnsignedLong(length, "enforce", "length");
    return { __proto__: null, hash: digestName(hash), length: bits };
  },
  hkdf(source) {
    const hash = hashOf(source);
    const info = bytesOf(source, "info");
    const salt = bytesOf(source, "salt");
    return { __proto__: null, hash: digestName(hash), info: copyBytes(info), salt: copyBytes(salt) };
  },
  pbkdf2(source) {
    const hash = hashOf(source);
    const iterations = toUnsignedLong(required(source, "iterations"), "enforce", "iterations");
    const salt = bytesOf(source, "salt");
    return { __proto__: null, hash: digestName(hash), iterations, salt: copyBytes(salt) };
  },
  rsaKey(source) {
    const modulusLength = toUnsignedLong(required(source, "modulusLength"), "enforce", "modulusLength");
    const exponent = required(source, "publicExponent");
    if (TypedArrayPrototypeGetTag(exponent) !== "Uint8Array") throw new TypeError("publicExponent is not a Uint8Array");
    const hash = hashOf(source);
    return { __proto__: null, modulusLength, publicExponent: copyBytes(exponent), hash: digestName(hash) };
  },
  hashed(source) {
    return { __proto__: null, hash: digestName(hashOf(source)) };
  },
  pss(source) {
    return { __proto__: null, saltLength: toUnsignedLong(required(source, "saltLength"), "enforce", "saltLength") };
  },
  oaep(source) {
    const { label } = source;
    if (label === undefined) return { __proto__: null, label: null };
    return { __proto__: null, label: copyBytes(toBufferSource(label, "label")) };
  },
  curve(source) {
    return { __proto__: null, namedCurve: toDOMString(required(source, "namedCurve")) };
  },
  publicKey(source) {
    const key = required(source, "public");
    if (!internal.isCryptoKey(key)) throw new TypeError("public is not a CryptoKey");
    return { __proto__: null, publicKey: crypto.keyOf(key) };
  },
};

// listOf makes a List from one or two constant arrays.
crypto.listOf = (array, more = []) => {
  const list = new List();
  for (let i = 0; i < array.length; i++) list[list.length] = array[i];
  for (let i = 0; i < more.length; i++) list[list.length] = more[i];
  return list;
};

crypto.params = params;
crypto.normalize = normalize;
crypto.toAlgorithm = toAlgorithm;
crypto.notSupported = notSupported;
