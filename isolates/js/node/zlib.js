// node/zlib.js is the module node:zlib.

"use strict";

const {
  ArrayBufferIsView, ObjectDefineProperty, Proxy, ReflectConstruct, StringPrototypeSlice, StringPrototypeToLowerCase,
} = primordials;
const { isArrayBuffer, liveBytes, subtleOps } = internal;
const { builtin, checks, constant, put, wrongType } = internal.node;
const { over } = internal.node.bufferParts;
const {
  ADLER, BrotliCompress, CRC, NO_SUM, brotliNow, brotliOptions, codes, compressing, constants, decompressing, deflateNow, inflateNow, tooLarge,
  values, zlibOptions,
} = internal.node.zlibParts;
const { asked, inPieces } = internal.nodeModule("work");
const { Buffer } = builtin("buffer");

function inputOf(value, name) {
  if (typeof value === "string") return host.encode(value);
  if (ArrayBufferIsView(value) || isArrayBuffer(value)) return liveBytes(value);
  throw wrongType(name, "of type string or an instance of Buffer, TypedArray, DataView, or ArrayBuffer", value);
}

const module = put({}, { constants, codes });

// add gives the module a class, and the functions around it.
function add(name, Class, read, now) {
  const method = name === "BrotliCompress" || name === "BrotliDecompress" ? `b${StringPrototypeSlice(name, 1)}`
    : StringPrototypeToLowerCase(StringPrototypeSlice(name, 0, 1)) + StringPrototypeSlice(name, 1);
  ObjectDefineProperty(Class, "name", { __proto__: null, value: name, configurable: true });
  // As in Node, the classes can be called without new.
  const Callable = new Proxy(Class, { __proto__: null, apply: (_, self, args) => ReflectConstruct(Class, args) });
  const functions = {
    [`create${name}`](options) { return new Class(options); },
    [method](buffer, options, callback) {
      if (typeof options === "function") {
        callback = options;
        options = undefined;
      }
      checks.function(callback, "callback");
      whole(new Class(options), inputOf(buffer, "buffer"), callback);
    },
    [`${method}Sync`](buffer, options) {
      const bytes = inputOf(buffer, "buffer");
      const o = read(options);
      const out = now(bytes, o);
      return o.info ? { buffer: out, engine: new Class(options) } : out;
    },
  };
  put(module, { [name]: Callable });
  put(Class.prototype, { constructor: Callable }, false);
  put(module, functions);
}

// whole has a stream take all of a buffer, and gives the callback all that comes of it.
function whole(engine, bytes, callback) {
  const parts = [];
  let n = 0;
  let ended = false;
  engine.on("data", (chunk) => {
    n += chunk.length;
    if (n > engine._maxOutputLength) engine.destroy(tooLarge(engine._maxOutputLength));
    else internal.appendArray(parts, chunk);
  });
  engine.on("error", (error) => {
    if (!ended) {
      ended = true;
      callback(error);
    }
  });
  engine.on("end", () => {
    if (ended) return;
    ended = true;
    const out = parts.length === 1 ? parts[0] : Buffer.concat(parts);
    callback(null, engine._info ? { buffer: out, engine } : out);
  });
  engine.end(over(bytes));
}

const zlib = (least) => (options) => zlibOptions(options, least);
const compressors = [["Deflate", ADLER, 9], ["Gzip", CRC, 9], ["DeflateRaw", NO_SUM, 8]];
for (let i = 0; i < compressors.length; i++) {
  const name = compressors[i][0];
  const kind = compressors[i][1];
  const least = compressors[i][2];
  add(name, compressing(name, kind, least), zlib(least), (bytes, o) => deflateNow(bytes, kind, o));
}
const decompressors = [["Inflate", "inflate"], ["Gunzip", "gunzip"], ["InflateRaw", "inflate-raw"], ["Unzip", "unzip"]];
for (let i = 0; i < decompressors.length; i++) {
  const format = decompressors[i][1];
  add(decompressors[i][0], decompressing(format, zlib(0)), zlib(0), (bytes, o) => inflateNow(bytes, format, o));
}
add("BrotliCompress", BrotliCompress, brotliOptions, brotliNow);
add("BrotliDecompress", decompressing("brotli", brotliOptions), brotliOptions, (bytes, o) => inflateNow(bytes, "brotli", o));

put(module, {
  crc32(data, value = 0) {
    if (typeof data !== "string" && !ArrayBufferIsView(data)) throw wrongType("data", "of type string or an instance of Buffer, TypedArray, or DataView", data);
    checks.integer(value, "value", 0, 4294967295);
    let sum = value;
    inPieces(inputOf(data, "data"), (piece) => {
      const s = asked([subtleOps.CRC32, sum, piece]);
      sum = ((s[0] << 24) | (s[1] << 16) | (s[2] << 8) | s[3]) >>> 0;
    });
    return sum;
  },
});

// Constants that Node has on the module, too.
const keys = primordials.ObjectKeys(values);
for (let i = 0; i < keys.length; i++) constant(module, keys[i], values[keys[i]]);
internal.nodeModules.zlib = module;
