// node/crypto_random.js has the random values of node:crypto, and its derivations of keys: pbkdf2, scrypt and hkdf.

"use strict";

const {
  ArrayBufferIsView, ArrayBufferPrototypeGetByteLength, Error, MathCeil, MathPow, NumberIsSafeInteger, RangeError, TypedArrayPrototypeGetBuffer,
  TypedArrayPrototypeGetByteLength, TypedArrayPrototypeGetTag, TypedArrayPrototypeSet, Uint8Array, lengthOf, subarray,
} = primordials;
const { isArrayBuffer, subtleOps, viewBytes } = internal;
const { checks, coded, outOfRange, put, wrongType } = internal.node;
const { FastBuffer, over } = internal.node.bufferParts;
const { digestSizes, failure, keyBytes, later, module, now, validDigest } = internal.node.cryptoParts;
const { bytesOf, soon } = internal.nodeModule("work");
const { random } = host;

const MOST = 2147483647;
const RANDOM_PIECE = 65536;

function fill(bytes) {
  const n = lengthOf(bytes);
  for (let at = 0; at < n; at += RANDOM_PIECE) random(subarray(bytes, at, at + RANDOM_PIECE < n ? at + RANDOM_PIECE : n));
}

function anyBuffer(value) {
  if (!ArrayBufferIsView(value) && !isArrayBuffer(value)) throw wrongType("buf", "an instance of ArrayBuffer or ArrayBufferView", value);
}

// part returns the part of a buffer that offset and size choose, in elements of it.
function part(buf, offset, size) {
  const whole = viewBytes(buf);
  const total = isArrayBuffer(buf) ? ArrayBufferPrototypeGetByteLength(buf) : lengthOf(whole);
  const each = ArrayBufferIsView(buf) && TypedArrayPrototypeGetTag(buf) !== undefined && lengthOf(buf) > 0
    ? TypedArrayPrototypeGetByteLength(buf) / lengthOf(buf) : 1;
  let start = 0;
  if (offset !== undefined) {
    checks.number(offset, "offset");
    start = offset * each;
    if (!(start >= 0 && start <= total)) throw outOfRange("offset", `>= 0 && <= ${total / each}`, offset);
  }
  if (size === undefined) return subarray(whole, start, total);
  checks.number(size, "size");
  const n = size * each;
  if (!(n >= 0 && n <= MOST)) throw outOfRange("size", `>= 0 && <= ${MOST}`, size);
  if (n + start > total) throw outOfRange("size + offset", `<= ${total}`, n + start);
  return subarray(whole, start, start + n);
}

function randomBytes(size, callback = undefined) {
  checks.number(size, "size");
  if (!(size >= 0 && size <= MOST)) throw outOfRange("size", `>= 0 && <= ${MOST}`, size);
  if (callback !== undefined) checks.function(callback, "callback");
  const out = new FastBuffer(size);
  fill(out);
  if (callback === undefined) return out;
  soon(callback, null, out);
  return undefined;
}

// inRange returns a random integer below a number of at most 2 ** 48. Each has the same probability.
function inRange(range) {
  const bytes = new Uint8Array(6);
  const most = MathPow(2, 48) - (MathPow(2, 48) % range);
  for (;;) {
    random(bytes);
    let x = 0;
    for (let i = 0; i < 6; i++) x = x * 256 + bytes[i];
    if (x < most) return x % range;
  }
}

function randomInt(min, max, callback) {
  const noMin = max === undefined || typeof max === "function";
  if (noMin) {
    callback = max;
    max = min;
    min = 0;
  }
  if (callback !== undefined) checks.function(callback, "callback");
  if (!NumberIsSafeInteger(min)) throw wrongType("min", "a safe integer", min);
  if (!NumberIsSafeInteger(max)) throw wrongType("max", "a safe integer", max);
  if (max <= min) throw outOfRange("max", `greater than the value of "min" (${min})`, max);
  const range = max - min;
  if (!(range <= 281474976710655)) throw outOfRange(noMin ? "max" : "max - min", "<= 281474976710655", range);
  const value = min + inRange(range);
  if (callback === undefined) return value;
  soon(callback, undefined, value);
  return undefined;
}

// ---- derivations ----

const MAX_ITERATIONS = 20000000; // times blocks, as in isolates/offload/nodecrypto
const MAX_DERIVED = 1048576;
const STEP = 32768;

function pbkdf2Args(password, salt, iterations, keylen, digest) {
  checks.string(digest, "digest");
  const args = { __proto__: null, password: bytesOf(password, "password"), salt: bytesOf(salt, "salt"), name: "" };
  checks.integer(iterations, "iterations", 1, MOST);
  checks.integer(keylen, "keylen", 0, MOST);
  args.name = validDigest(digest);
  if (keylen > MAX_DERIVED) throw outOfRange("keylen", `at most ${MAX_DERIVED} in a worker`, keylen);
  args.blocks = MathCeil(keylen / digestSizes[args.name]);
  if (iterations * args.blocks > MAX_ITERATIONS) {
    throw outOfRange("iterations", `at most ${MAX_ITERATIONS} in a worker, times the blocks of the hash in keylen`, iterations);
  }
  return args;
}

// pbkdf2Sync makes steps, so that the limit of CPU time can end it between two.
function pbkdf2Sync(password, salt, iterations, keylen, digest) {
  const a = pbkdf2Args(password, salt, iterations, keylen, digest);
  const size = digestSizes[a.name];
  const out = new FastBuffer(keylen);
  for (let block = 1; block <= a.blocks; block++) {
    let state = null;
    for (let left = iterations; left > 0; left -= STEP) {
      state = now(subtleOps.PBKDF2_STEP, a.name, a.password, a.salt, state, block, left < STEP ? left : STEP);
    }
    const at = (block - 1) * size;
    TypedArrayPrototypeSet(out, subarray(state, size, keylen - at < size ? size + keylen - at : 2 * size), at);
  }
  return out;
}

const asBuffer = (answer) => [null, over(answer)];

function pbkdf2(password, salt, iterations, keylen, digest, callback) {
  if (typeof digest === "function") checks.string(undefined, "digest");
  const a = pbkdf2Args(password, salt, iterations, keylen, digest);
  checks.function(callback, "callback");
  later([subtleOps.NODE_PBKDF2, a.name, a.password, a.salt, iterations, keylen], asBuffer, callback);
}

const MAX_SCRYPT_MEMORY = 67108864; // as in isolates/offload/nodecrypto
const MAX_SCRYPT_WORK = 268435456;

function scryptParameter(options, short, long, otherwise) {
  const one = options?.[short];
  const two = options?.[long];
  if (one !== undefined && two !== undefined) throw coded(Error, "ERR_INCOMPATIBLE_OPTION_PAIR", `Option "${short}" cannot be used in combination with option "${long}"`);
  const value = one ?? two;
  if (value === undefined) return otherwise;
  checks.integer(value, short, 0, 4294967295);
  return value === 0 ? otherwise : value;
}

const badScrypt = (why = "") => coded(RangeError, "ERR_CRYPTO_INVALID_SCRYPT_PARAMS", `Invalid scrypt params${why}`);

function scryptArgs(password, salt, keylen, options) {
  const a = { __proto__: null, password: bytesOf(password, "password"), salt: bytesOf(salt, "salt") };
  checks.integer(keylen, "keylen", 0, MOST);
  const N = a.N = scryptParameter(options, "N", "cost", 16384);
  const r = a.r = scryptParameter(options, "r", "blockSize", 8);
  const p = a.p = scryptParameter(options, "p", "parallelization", 1);
  let maxmem = options?.maxmem;
  if (maxmem === undefined) maxmem = 33554432;
  else {
    checks.integer(maxmem, "maxmem", 0);
    if (maxmem === 0) maxmem = 33554432;
  }
  if (N < 2 || !isPowerOfTwo(N) || r * p >= 1073741824) throw badScrypt();
  a.memory = 128 * r * (N + p + 2);
  if (a.memory > maxmem) throw badScrypt(": error:030000AC:digital envelope routines::memory limit exceeded");
  if (128 * N * r > MAX_SCRYPT_MEMORY) throw badScrypt(`: 128 * N * r is at most ${MAX_SCRYPT_MEMORY} in a worker`);
  if (128 * N * r * p > MAX_SCRYPT_WORK || 128 * r * p > MAX_SCRYPT_MEMORY) throw badScrypt(`: 128 * N * r * p is at most ${MAX_SCRYPT_WORK} in a worker`);
  if (keylen > MAX_DERIVED) throw outOfRange("keylen", `at most ${MAX_DERIVED} in a worker`, keylen);
  if (MathCeil(keylen / 32) * 128 * r * p > MAX_SCRYPT_WORK || lengthOf(a.salt) * 4 * r * p > MAX_SCRYPT_WORK) {
    throw badScrypt(": r * p is too large for this salt and keylen in a worker");
  }
  return a;
}

function isPowerOfTwo(n) {
  while (n > 1 && n % 2 === 0) n /= 2;
  return n === 1;
}

function scryptSync(password, salt, keylen, options = undefined) {
  const a = scryptArgs(password, salt, keylen, options);
  if (keylen === 0) return new FastBuffer(0);
  let room;
  try {
    room = new Uint8Array(a.memory); // what Go takes for its table is charged to the worker while it works
  } catch {
    throw badScrypt(": no memory is left for so much");
  }
  const out = over(now(subtleOps.SCRYPT, a.password, a.salt, a.N, a.r, a.p, keylen));
  primordials.ArrayBufferPrototypeTransfer(TypedArrayPrototypeGetBuffer(room), 0);
  return out;
}

function scrypt(password, salt, keylen, options, callback = undefined) {
  if (callback === undefined) {
    callback = options;
    options = undefined;
  }
  const a = scryptArgs(password, salt, keylen, options);
  checks.function(callback, "callback");
  if (keylen === 0) {
    soon(callback, null, new FastBuffer(0));
    return;
  }
  later([subtleOps.SCRYPT, a.password, a.salt, a.N, a.r, a.p, keylen], asBuffer, callback);
}

function hkdfArgs(digest, key, salt, info, length) {
  checks.string(digest, "digest");
  const bytes = keyBytes(key, "ikm");
  const a = { __proto__: null, key: bytes, salt: bytesOf(salt, "salt"), info: bytesOf(info, "info"), name: "" };
  checks.integer(length, "length", 0, MOST);
  if (lengthOf(a.info) > 1024) throw outOfRange("info", "must not contain more than 1024 bytes", lengthOf(a.info));
  a.name = validDigest(digest);
  if (length > 255 * digestSizes[a.name]) throw coded(RangeError, "ERR_CRYPTO_INVALID_KEYLEN", "Invalid key length");
  return a;
}

function hkdfSync(digest, ikm, salt, info, length) {
  const a = hkdfArgs(digest, ikm, salt, info, length);
  if (length === 0) return TypedArrayPrototypeGetBuffer(new Uint8Array(0));
  return TypedArrayPrototypeGetBuffer(now(subtleOps.NODE_HKDF, a.name, a.key, a.salt, a.info, length));
}

function hkdf(digest, ikm, salt, info, length, callback) {
  const a = hkdfArgs(digest, ikm, salt, info, length);
  checks.function(callback, "callback");
  if (length === 0) soon(callback, null, TypedArrayPrototypeGetBuffer(new Uint8Array(0)));
  else later([subtleOps.NODE_HKDF, a.name, a.key, a.salt, a.info, length], (answer) => [null, TypedArrayPrototypeGetBuffer(answer)], callback);
}

const functions = {
  randomBytes, randomInt, pbkdf2, pbkdf2Sync, scrypt, scryptSync, hkdf, hkdfSync,
  pseudoRandomBytes: randomBytes, prng: randomBytes, rng: randomBytes,
  randomFillSync(buf, offset = 0, size = undefined) {
    anyBuffer(buf);
    fill(part(buf, offset, size));
    return buf;
  },
  randomFill(buf, offset, size, callback) {
    anyBuffer(buf);
    if (typeof offset === "function") {
      callback = offset;
      offset = size = undefined;
    } else if (typeof size === "function") {
      callback = size;
      size = undefined;
    } else checks.function(callback, "callback");
    fill(part(buf, offset, size));
    soon(callback, null, buf);
  },
  randomUUID(options = undefined) {
    if (options !== undefined) {
      checks.object(options, "options");
      if (options.disableEntropyCache !== undefined) checks.boolean(options.disableEntropyCache, "options.disableEntropyCache");
    }
    return internal.randomUUID();
  },
  timingSafeEqual(buf1, buf2) {
    if (!ArrayBufferIsView(buf1) && !isArrayBuffer(buf1)) throw wrongType("buf1", "an instance of ArrayBuffer, Buffer, TypedArray, or DataView", buf1);
    if (!ArrayBufferIsView(buf2) && !isArrayBuffer(buf2)) throw wrongType("buf2", "an instance of ArrayBuffer, Buffer, TypedArray, or DataView", buf2);
    const a = viewBytes(buf1);
    const b = viewBytes(buf2);
    if (lengthOf(a) !== lengthOf(b)) throw coded(RangeError, "ERR_CRYPTO_TIMING_SAFE_EQUAL_LENGTH", "Input buffers must have the same byte length");
    if (lengthOf(a) > 1048576) throw failure("at most 1 MiB is compared");
    return host.ask(internal.askOps.TIMING_SAFE_EQUAL, a, b);
  },
  getRandomValues(array) { return internal.webcrypto.getRandomValues(array); },
};
put(module, functions);
put(module, { webcrypto: internal.webcrypto, get subtle() { return internal.crypto.subtle; } });
