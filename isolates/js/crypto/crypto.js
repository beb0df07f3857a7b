// crypto/crypto.js is Crypto: random values, UUIDs and the property crypto.subtle.

"use strict";

const {
  ArrayBuffer, NumberPrototypeToString, TypeError, TypedArrayPrototypeGetByteLength, TypedArrayPrototypeGetTag, Uint8Array,
} = primordials;
const {
  DOMException, QuotaExceededError, TOKEN, defineAttribute, defineInterface, illegalConstructor, illegalInvocation, isObject, isView,
  requireArguments, viewBytes,
} = internal;
const { random } = host;

const integerArrays = ["Int8Array", "Uint8Array", "Uint8ClampedArray", "Int16Array", "Uint16Array", "Int32Array", "Uint32Array",
  "BigInt64Array", "BigUint64Array"];

function isIntegerArray(value) {
  const tag = TypedArrayPrototypeGetTag(value);
  for (let i = 0; i < integerArrays.length; i++) if (integerArrays[i] === tag) return true;
  return false;
}

// randomUUID makes its buffer itself. V8 makes the buffer of a small array only on the first access, and gives up
// when there is no memory for it.
function randomUUID() {
  const bytes = new Uint8Array(new ArrayBuffer(16));
  random(bytes);
  bytes[6] = (bytes[6] & 0x0f) | 0x40;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  let out = "";
  for (let i = 0; i < 16; i++) {
    if (i === 4 || i === 6 || i === 8 || i === 10) out += "-";
    out += (bytes[i] < 16 ? "0" : "") + NumberPrototypeToString(bytes[i], 16);
  }
  return out;
}
internal.randomUUID = randomUUID;

class Crypto {
  #brand = true;
  constructor(token = undefined) {
    if (token !== TOKEN) throw illegalConstructor();
  }
  get subtle() {
    if (!isObject(this) || !(#brand in this)) throw illegalInvocation("Crypto");
    return internal.crypto.subtle;
  }
  getRandomValues(array) {
    if (!(#brand in this)) throw illegalInvocation("Crypto");
    requireArguments(arguments.length, 1, "getRandomValues");
    if (!isView(array)) throw new TypeError("getRandomValues: the argument is not a typed array");
    if (!isIntegerArray(array)) throw new DOMException("getRandomValues: the array is not one of integers", "TypeMismatchError");
    const length = TypedArrayPrototypeGetByteLength(array);
    if (length > 65536) throw new QuotaExceededError("getRandomValues: more than 65536 bytes at once");
    if (length > 0) random(viewBytes(array));
    return array;
  }
  randomUUID() {
    if (!(#brand in this)) throw illegalInvocation("Crypto");
    return randomUUID();
  }
}
defineInterface(Crypto, "Crypto");
host.lazy(Crypto.prototype, "DigestStream", true); // of crypto/digest_stream.js

const crypto = new Crypto(TOKEN);
internal.webcrypto = crypto;
defineAttribute("crypto", () => crypto);
