// crypto/keys.js is CryptoKey, and the import and export of JSON Web Keys. The bytes of a key are in a private field
// of the runtime. They end with the context, and no number or handle refers to them anywhere else.

"use strict";

const { List, StringPrototypeIncludes, TypeError, lengthOf, sealedProto } = primordials;
const {
  DOMException, TOKEN, appendArray, defineInterface, illegalConstructor, illegalInvocation, isObject, toDOMString,
  toEnum, toSequence,
} = internal;
const { crypto } = internal;

class KeyState {
  type; // "secret", "private", "public"
  algorithm; // from the registry
  details; // hash, length, curve, exponent: the details that the algorithm needs
  bytes; // in the format of isolates/offload/webcrypto
  extractable = false;
  usages = null; // a List
  constructor(type, algorithm, details, bytes) {
    this.type = type;
    this.algorithm = algorithm;
    this.details = details;
    this.bytes = bytes;
  }
}
sealedProto(KeyState);

let keyOf;

class CryptoKey {
  #key;
  #algorithm = null;
  #usages = null;
  constructor(token = undefined, key = undefined) {
    if (token !== TOKEN) throw illegalConstructor();
    this.#key = key;
  }
  static {
    keyOf = (value) => {
      if (!isObject(value) || !(#key in value)) throw illegalInvocation("CryptoKey");
      return value.#key;
    };
    internal.isCryptoKey = (value) => isObject(value) && #key in value;
  }
  get type() { return keyOf(this).type; }
  get extractable() { return keyOf(this).extractable; }
  get algorithm() {
    const key = keyOf(this);
    if (this.#algorithm === null) this.#algorithm = key.algorithm.describe(key.details);
    return this.#algorithm;
  }
  get usages() {
    const key = keyOf(this);
    if (this.#usages === null) this.#usages = toArray(key.usages);
    return this.#usages;
  }
}
defineInterface(CryptoKey, "CryptoKey");

crypto.keyOf = keyOf;
crypto.newKey = (key) => new CryptoKey(TOKEN, key);

// cloneCryptoKey is for structuredClone. It returns a second object with the same state, which never changes.
internal.cloneCryptoKey = (value) => new CryptoKey(TOKEN, keyOf(value));

internal.addInspector(internal.isCryptoKey, (value) => {
  const key = keyOf(value);
  return ["type", key.type, "extractable", key.extractable, "algorithm", key.algorithm.describe(key.details),
    "usages", toArray(key.usages)];
});

function toArray(list) {
  const out = [];
  for (let i = 0; i < list.length; i++) appendArray(out, list[i]);
  return out;
}
crypto.toArray = toArray;

// ---- usages ----

const allUsages = ["encrypt", "decrypt", "sign", "verify", "deriveKey", "deriveBits", "wrapKey", "unwrapKey"];

function has(list, item) {
  for (let i = 0; i < list.length; i++) if (list[i] === item) return true;
  return false;
}
crypto.has = has;

crypto.readUsages = (value) => toSequence(value, (item) => toEnum(item, allUsages, "a key usage"), "keyUsages");

// chosen returns the usages that are in allowed, in the order of the standard, once each.
function chosen(usages, allowed) {
  const out = new List();
  for (let i = 0; i < allUsages.length; i++) {
    if (has(usages, allUsages[i]) && has(allowed, allUsages[i])) out[out.length] = allUsages[i];
  }
  return out;
}

// seal makes a key's state final.
crypto.seal = (key, extractable, usages) => {
  key.extractable = extractable;
  key.usages = chosen(usages, allUsages);
  return key;
};

crypto.chosen = chosen;

crypto.requireUsages = (usages, allowed, what) => {
  for (let i = 0; i < usages.length; i++) {
    if (!has(allowed, usages[i])) throw new DOMException(`${what} cannot be used for ${usages[i]}`, "SyntaxError");
  }
};

crypto.requireSome = (key) => {
  if (key.type !== "public" && key.usages.length === 0) {
    throw new DOMException(`a ${key.type} key without usages is of no use`, "SyntaxError");
  }
  return key;
};

// ---- JSON Web Keys ----

class Jwk {
  alg;
  crv;
  d;
  dp;
  dq;
  e;
  ext;
  k;
  key_ops;
  kty;
  n;
  oth;
  p;
  q;
  qi;
  use;
  x;
  y;
}
sealedProto(Jwk);

const toText = (value) => (value === undefined ? undefined : toDOMString(value));

function toOtherPrime(value) {
  if (value === undefined || value === null) return null;
  if (!isObject(value)) throw new TypeError("a member of oth is not an object");
  toText(value.d);
  toText(value.r);
  toText(value.t);
  return null;
}

// readJwk converts a JsonWebKey dictionary. It reads the members in the order of their names.
crypto.readJwk = (value) => {
  const jwk = new Jwk();
  jwk.alg = toText(value.alg);
  jwk.crv = toText(value.crv);
  jwk.d = toText(value.d);
  jwk.dp = toText(value.dp);
  jwk.dq = toText(value.dq);
  jwk.e = toText(value.e);
  const { ext } = value;
  jwk.ext = ext === undefined ? undefined : !!ext;
  jwk.k = toText(value.k);
  const operations = value.key_ops;
  jwk.key_ops = operations === undefined ? undefined : toSequence(operations, toDOMString, "key_ops");
  jwk.kty = toText(value.kty);
  jwk.n = toText(value.n);
  const { oth } = value;
  jwk.oth = oth === undefined ? undefined : toSequence(oth, toOtherPrime, "oth");
  jwk.p = toText(value.p);
  jwk.q = toText(value.q);
  jwk.qi = toText(value.qi);
  jwk.use = toText(value.use);
  jwk.x = toText(value.x);
  jwk.y = toText(value.y);
  return jwk;
};

internal.isJwk = (value) => value instanceof Jwk;

function badJwk(member) {
  return new DOMException(`the member ${member} of the JSON Web Key does not fit`, "DataError");
}
crypto.badJwk = badJwk;

// checkJwk makes the checks that all kinds of keys share. use is "sig" or "enc".
crypto.checkJwk = (jwk, kty, use, extractable, usages) => {
  if (jwk.kty !== kty) throw badJwk("kty");
  if (usages.length > 0 && jwk.use !== undefined && jwk.use !== use) throw badJwk("use");
  const operations = jwk.key_ops;
  if (operations !== undefined) {
    for (let i = 0; i < operations.length; i++) {
      for (let j = 0; j < i; j++) if (operations[i] === operations[j]) throw badJwk("key_ops");
    }
    for (let i = 0; i < usages.length; i++) if (!has(operations, usages[i])) throw badJwk("key_ops");
  }
  if (jwk.ext === false && extractable) throw badJwk("ext");
};

// jwkBytes decodes a member. size, if given, is the required number of bytes.
crypto.jwkBytes = (jwk, member, size) => {
  const text = jwk[member];
  if (text === undefined || StringPrototypeIncludes(text, "=")) throw badJwk(member);
  const bytes = internal.fromBase64url(text);
  if (bytes === null || (size !== undefined && lengthOf(bytes) !== size)) throw badJwk(member);
  return bytes;
};

crypto.KeyState = KeyState;
