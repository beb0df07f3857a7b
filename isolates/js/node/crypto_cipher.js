// node/crypto_cipher.js is createCipheriv and createDecipheriv of node:crypto. Go encrypts each part for itself: what lasts
// is a counter, the last block, or a state of GCM.

"use strict";

const {
  ArrayBufferIsView, Error, List, RangeError, StringPrototypeToLowerCase, TypeError, TypedArrayPrototypeSet, Uint8Array, lengthOf, sealedProto,
  subarray,
} = primordials;
const { concatBytes, isArrayBuffer, subtleOps } = internal;
const { builtin, checks, coded, put, wrongType } = internal.node;
const { encodingOf } = internal.node.codec;
const { over } = internal.node.bufferParts;
const { failure, keyBytes, module, now } = internal.node.cryptoParts;
const { LazyTransform, bytesOf, inPieces } = internal.nodeModule("work");

class Info {
  name;
  mode;
  keyLength;
  ivLength;
  blockSize;
  nid;
  constructor(name, mode, keyLength, ivLength, blockSize, nid) {
    this.name = name;
    this.mode = mode;
    this.keyLength = keyLength;
    this.ivLength = ivLength;
    this.blockSize = blockSize;
    this.nid = nid;
  }
}
sealedProto(Info);

const infos = { __proto__: null };
const listed = [];
const nids = { __proto__: null, cbc: [419, 423, 427], ecb: [418, 422, 426], ctr: [904, 905, 906], gcm: [895, 898, 901] };
for (let i = 0; i < 3; i++) {
  const bits = 128 + 64 * i;
  for (let k = 0; k < 4; k++) {
    const mode = k === 0 ? "cbc" : k === 1 ? "ecb" : k === 2 ? "ctr" : "gcm";
    const name = `aes-${bits}-${mode}`;
    infos[name] = new Info(mode === "gcm" ? `id-aes${bits}-gcm` : name, mode, bits / 8, mode === "ecb" ? 0 : mode === "gcm" ? 12 : 16,
      k < 2 ? 16 : 1, nids[mode][i]);
    internal.appendArray(listed, name);
  }
  infos[`aes${bits}`] = infos[`aes-${bits}-cbc`];
  infos[`id-aes${bits}-gcm`] = infos[`aes-${bits}-gcm`];
}
infos["chacha20-poly1305"] = new Info("chacha20-poly1305", "stream", 32, 12, 1, 1018);
internal.appendArray(listed, "chacha20-poly1305");

const infoOf = (name) => infos[StringPrototypeToLowerCase(name)];
const MOST_CHACHA = 3145728; // its tag is made of all of it at once

const invalidState = (what) => coded(Error, "ERR_CRYPTO_INVALID_STATE", `Invalid state for operation ${what}`);
const invalidTag = (n) => coded(TypeError, "ERR_CRYPTO_INVALID_AUTH_TAG", `Invalid authentication tag length: ${n}`);
const wrongLength = () => coded(Error, "ERR_OSSL_WRONG_FINAL_BLOCK_LENGTH", "error:1C80006B:Provider routines::wrong final block length");

// Engine encrypts or decrypts for one object.
class Engine {
  info;
  encrypt;
  key;
  iv;
  tagLength;
  tag = null;
  additional = new List(); // of ChaCha20-Poly1305
  additionalBytes = 0;
  seen = new List(); // what ChaCha20-Poly1305 has encrypted
  state = null; // of GCM
  rest = new Uint8Array(0); // less than a block, or a last block that may have padding
  total = 0;
  padding = true;
  over = false;
  constructor(info, encrypt, key, iv, tagLength) {
    this.info = info;
    this.encrypt = encrypt;
    this.key = key;
    this.iv = iv;
    this.tagLength = tagLength;
  }
  authenticates() { return this.info.mode === "gcm" || this.info.mode === "stream"; }
  update(bytes) {
    const parts = new List();
    inPieces(bytes, (piece) => { parts[parts.length] = this.part(piece); });
    return parts.length === 1 ? parts[0] : concatBytes(parts);
  }
  part(bytes) {
    const { mode } = this.info;
    if (mode === "cbc" || mode === "ecb") return this.blocks(bytes);
    const n = lengthOf(bytes);
    const at = this.total;
    this.total += n;
    if (mode === "ctr") return now(subtleOps.CTR_FROM, this.key, this.iv, at, bytes);
    if (mode === "gcm") {
      const answer = now(subtleOps.GCM_UPDATE, this.encrypt, this.key, this.iv, this.state, bytes);
      this.state = answer[1];
      return answer[0];
    }
    if (this.total > MOST_CHACHA) throw failure(`chacha20-poly1305 takes at most ${MOST_CHACHA} bytes`);
    const out = now(subtleOps.CHA_CHA20, this.key, this.iv, at, bytes);
    this.seen[this.seen.length] = new Uint8Array(this.encrypt ? out : bytes);
    return out;
  }
  // blocks works on all whole blocks, but for the last one if it may have padding.
  blocks(bytes) {
    const had = lengthOf(this.rest);
    const all = new Uint8Array(had + lengthOf(bytes));
    TypedArrayPrototypeSet(all, this.rest, 0);
    TypedArrayPrototypeSet(all, bytes, had);
    let n = lengthOf(all) - (lengthOf(all) % 16);
    if (!this.encrypt && this.padding && n === lengthOf(all) && n > 0) n -= 16;
    this.rest = subarray(all, n);
    return n === 0 ? new Uint8Array(0) : this.cipher(subarray(all, 0, n));
  }
  cipher(blocks) {
    const out = now(subtleOps.BLOCKS, this.encrypt, this.key, this.iv, blocks);
    if (this.iv !== null) this.iv = new Uint8Array(subarray(this.encrypt ? out : blocks, lengthOf(blocks) - 16));
    return out;
  }
  end() {
    const { mode } = this.info;
    if (mode === "cbc" || mode === "ecb") return this.lastBlock();
    if (this.authenticates()) this.authenticate();
    return new Uint8Array(0);
  }
  lastBlock() {
    const n = lengthOf(this.rest);
    if (!this.padding) {
      if (n !== 0) throw wrongLength();
      return new Uint8Array(0);
    }
    if (this.encrypt) {
      const block = new Uint8Array(16);
      TypedArrayPrototypeSet(block, this.rest, 0);
      for (let i = n; i < 16; i++) block[i] = 16 - n;
      return this.cipher(block);
    }
    if (n !== 16) throw wrongLength();
    // DECRYPT_CBC checks the padding in constant time. With a vector of zeros it decrypts ECB.
    try {
      return now(subtleOps.DECRYPT_CBC, this.key, this.iv ?? new Uint8Array(16), this.rest);
    } catch {
      throw coded(Error, "ERR_OSSL_BAD_DECRYPT", "error:1C800064:Provider routines::bad decrypt");
    }
  }
  authenticate() {
    const made = this.info.mode === "gcm" ? now(subtleOps.GCM_TAG, this.key, this.iv, this.state)
      : now(subtleOps.POLY1305, this.key, this.iv, concatBytes(this.additional), concatBytes(this.seen));
    if (this.encrypt) {
      this.tag = new Uint8Array(subarray(made, 0, this.tagLength ?? 16));
      return;
    }
    if (this.tag === null || !host.ask(internal.askOps.TIMING_SAFE_EQUAL, this.tag, subarray(made, 0, lengthOf(this.tag)))) {
      throw new Error("Unsupported state or unable to authenticate data");
    }
  }
}
sealedProto(Engine);

function tagLengthOf(info, options) {
  const length = options?.authTagLength;
  if (length === undefined || length === null) return info.mode === "stream" ? 16 : undefined;
  checks.integer(length, "options.authTagLength", 0, 4294967295);
  if (info.mode === "gcm" && length !== 4 && length !== 8 && !(length >= 12 && length <= 16)) throw invalidTag(length);
  if (info.mode === "stream" && !(length >= 1 && length <= 16)) throw invalidTag(length);
  return length;
}

function engineOf(encrypt, cipher, key, iv, options) {
  checks.string(cipher, "cipher");
  const bytes = keyBytes(key, "key", options?.encoding);
  const vector = iv === null ? null : bytesOf(iv, "iv");
  const info = infoOf(cipher);
  if (info === undefined) throw coded(Error, "ERR_CRYPTO_UNKNOWN_CIPHER", "Unknown cipher");
  const n = vector === null ? 0 : lengthOf(vector);
  const tagLength = tagLengthOf(info, options);
  if (lengthOf(bytes) !== info.keyLength) throw coded(RangeError, "ERR_CRYPTO_INVALID_KEYLEN", "Invalid key length");
  const fits = info.mode === "gcm" ? n > 0 && n <= 1048576 : n === info.ivLength;
  if (!fits) throw coded(TypeError, "ERR_CRYPTO_INVALID_IV", "Invalid initialization vector");
  return new Engine(info, encrypt, bytes, n === 0 ? null : new Uint8Array(vector), tagLength);
}

let engineIn;

// Base is what Cipheriv and Decipheriv share.
class Base extends LazyTransform {
  #engine;
  #decoder = null;
  constructor(encrypt, cipher, key, iv, options) {
    const engine = engineOf(encrypt, cipher, key, iv, options);
    super(options !== null && typeof options === "object" ? options : undefined);
    this.#engine = engine;
  }
  static {
    engineIn = (value) => value.#engine;
  }
  #shown(bytes, encoding, last) {
    if (encoding === undefined || encoding === null || encoding === "buffer") return over(bytes);
    const name = encodingOf(encoding);
    const { StringDecoder } = builtin("string_decoder");
    this.#decoder ??= new StringDecoder(name);
    if (this.#decoder.encoding !== new StringDecoder(name).encoding) throw coded(Error, "ERR_INTERNAL_ASSERTION", "Cannot change encoding");
    return last ? this.#decoder.end(over(bytes)) : this.#decoder.write(over(bytes));
  }
  update(data, inputEncoding = undefined, outputEncoding = undefined) {
    const bytes = bytesOf(data, "data", inputEncoding, false);
    if (this.#engine.over) throw new Error("Trying to add data in unsupported state");
    return this.#shown(this.#engine.update(bytes), outputEncoding, false);
  }
  final(outputEncoding = undefined) {
    const engine = this.#engine;
    if (engine.over) throw coded(Error, "ERR_CRYPTO_INVALID_STATE", "Invalid state");
    engine.over = true;
    return this.#shown(engine.end(), outputEncoding, true);
  }
  setAutoPadding(auto = true) {
    if (this.#engine.over) throw invalidState("setAutoPadding");
    this.#engine.padding = !!auto;
    return this;
  }
  setAAD(buffer, options = undefined) {
    const engine = this.#engine;
    const bytes = bytesOf(buffer, "buffer", options?.encoding);
    if (engine.over || !engine.authenticates() || engine.total > 0) throw invalidState("setAAD");
    if (engine.info.mode === "gcm") inPieces(bytes, (piece) => { engine.state = now(subtleOps.GCM_ADDITIONAL, engine.key, engine.iv, engine.state, piece); });
    else {
      engine.additionalBytes += lengthOf(bytes);
      if (engine.additionalBytes > MOST_CHACHA) throw failure(`chacha20-poly1305 takes at most ${MOST_CHACHA} bytes`);
      engine.additional[engine.additional.length] = new Uint8Array(bytes);
    }
    return this;
  }
  _transform(chunk, encoding, callback) {
    this.push(this.update(chunk, encoding));
    callback();
  }
  _flush(callback) {
    let out;
    try {
      out = this.final();
    } catch (error) {
      callback(error);
      return;
    }
    this.push(out);
    callback();
  }
}

class Cipheriv extends Base {
  constructor(cipher, key, iv, options = undefined) {
    super(true, cipher, key, iv, options);
  }
  getAuthTag() {
    const { tag } = engineIn(this);
    if (tag === null) throw invalidState("getAuthTag");
    return over(new Uint8Array(tag));
  }
}

class Decipheriv extends Base {
  constructor(cipher, key, iv, options = undefined) {
    super(false, cipher, key, iv, options);
  }
  setAuthTag(tag, encoding = undefined) {
    const engine = engineIn(this);
    if (typeof tag !== "string" && !ArrayBufferIsView(tag) && !isArrayBuffer(tag)) {
      throw wrongType("buffer", "of type string or an instance of ArrayBuffer, Buffer, TypedArray, or DataView", tag);
    }
    const bytes = new Uint8Array(bytesOf(tag, "buffer", encoding));
    if (engine.over || !engine.authenticates() || engine.tag !== null) throw invalidState("setAuthTag");
    const n = lengthOf(bytes);
    // A short tag is easy to guess: whoever wants one says so. Node warns of others, and is going to refuse them.
    if (n !== (engine.tagLength ?? 16)) throw invalidTag(n);
    engine.tag = bytes;
    return this;
  }
}

put(module, { Cipheriv, Decipheriv });
put(module, {
  createCipheriv(cipher, key, iv, options) { return new Cipheriv(cipher, key, iv, options); },
  createDecipheriv(cipher, key, iv, options) { return new Decipheriv(cipher, key, iv, options); },
  getCiphers() {
    const out = [];
    for (let i = 0; i < listed.length; i++) internal.appendArray(out, listed[i]);
    return out;
  },
  getCipherInfo(nameOrNid, options) {
    let info;
    if (typeof nameOrNid === "string") info = infoOf(nameOrNid);
    else {
      if (typeof nameOrNid !== "number") throw wrongType("nameOrNid", "of type string or number", nameOrNid);
      for (let i = 0; i < listed.length; i++) if (infos[listed[i]].nid === nameOrNid) info = infos[listed[i]];
    }
    if (info === undefined) return undefined;
    const { keyLength, ivLength } = options ?? {};
    if (keyLength !== undefined && keyLength !== info.keyLength) return undefined;
    if (ivLength !== undefined && !(info.mode === "gcm" ? ivLength > 0 : ivLength === info.ivLength)) return undefined;
    const out = { mode: info.mode, name: info.name, nid: info.nid };
    if (info.mode !== "stream") out.blockSize = info.blockSize;
    if (info.ivLength > 0) out.ivLength = ivLength ?? info.ivLength;
    out.keyLength = info.keyLength;
    return out;
  },
});
