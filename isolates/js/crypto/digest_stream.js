// crypto/digest_stream.js is crypto.DigestStream of Cloudflare: a WritableStream that hashes what is written. The bytes
// of the hash's state are kept here between chunks, so Go keeps nothing.

"use strict";

const {
  BigInt, PromiseReject, PromiseResolve, ReflectApply, TypeError, TypedArrayPrototypeGetBuffer, lengthOf,
  sealedProto, subarray,
} = primordials;
const {
  copyBytes, crypto, defineInterface, illegalInvocation, isBufferSource, isObject, markHandled, newCapability,
  requireArguments, streams, upon,
} = internal;
const { WritableController, WritableState, setUpWritable } = streams;
const { encode } = host;

const PIECE = 1048576; // bytes that are hashed in one step

class Digest {
  name;
  state = null; // of the hash, as Go has written it
  total = 0;
  result = newCapability();
  writable = new WritableState();
  constructor(name) {
    this.name = name;
    markHandled(this.result.promise);
    setUpWritable(this.writable, new WritableController(), undefined, promising(this, this.write),
      promising(this, this.close), promising(this, this.abort), 1, undefined);
  }
  write(chunk) {
    let bytes;
    if (typeof chunk === "string") bytes = encode(chunk);
    else if (isBufferSource(chunk)) bytes = copyBytes(chunk);
    else throw new TypeError("DigestStream: a chunk is neither a string, an ArrayBuffer nor a view of one");
    return this.hash(bytes);
  }
  async hash(bytes) {
    const n = lengthOf(bytes);
    for (let at = 0; at < n; at += PIECE) {
      const piece = subarray(bytes, at, at + PIECE < n ? at + PIECE : n);
      this.state = await settled(crypto.digestUpdate(this.name, this.state, piece));
      this.total += lengthOf(piece);
    }
  }
  async close() {
    this.result.resolve(TypedArrayPrototypeGetBuffer(await settled(crypto.digestEnd(this.name, this.state))));
  }
  abort(reason) {
    this.result.reject(reason);
    return undefined;
  }
}
sealedProto(Digest);

// promising makes an algorithm of the stream from a method. What it throws is also what the digest is rejected with.
function promising(digest, method) {
  return (argument) => {
    let done;
    try {
      done = PromiseResolve(ReflectApply(method, digest, [argument]));
    } catch (error) {
      done = PromiseReject(error);
    }
    upon(done, undefined, (error) => { digest.result.reject(error); });
    return done;
  };
}

function settled(result) {
  if (!crypto.isLater(result)) return result;
  const { promise, resolve, reject } = newCapability();
  result.on(resolve, reject);
  return promise;
}

let digestOf;

class DigestStream extends internal.WritableStream {
  #digest;
  constructor(algorithm) {
    requireArguments(arguments.length, 1, "new DigestStream");
    const digest = new Digest(crypto.streamedDigest(algorithm));
    streams.giveWritable(digest.writable);
    try {
      super();
    } finally {
      streams.giveWritable(null);
    }
    this.#digest = digest;
  }
  static {
    digestOf = (value) => {
      if (!isObject(value) || !(#digest in value)) throw illegalInvocation("DigestStream");
      return value.#digest;
    };
  }
  get digest() { return digestOf(this).result.promise; }
  get bytesWritten() { return BigInt(digestOf(this).total); }
}
defineInterface(DigestStream, "DigestStream", true);
internal.provide("DigestStream", DigestStream);
