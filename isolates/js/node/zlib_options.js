// node/zlib_options.js has the constants of node:zlib, its errors and what its options may be.

"use strict";

const { ArrayBufferIsView, Error, NumberIsFinite, NumberIsNaN, RangeError, ReflectOwnKeys } = primordials;
const { isArrayBuffer } = internal;
const { coded, outOfRange, put, wrongType } = internal.node;

const values = {
  Z_NO_FLUSH: 0, Z_PARTIAL_FLUSH: 1, Z_SYNC_FLUSH: 2, Z_FULL_FLUSH: 3, Z_FINISH: 4, Z_BLOCK: 5, Z_OK: 0, Z_STREAM_END: 1, Z_NEED_DICT: 2,
  Z_ERRNO: -1, Z_STREAM_ERROR: -2, Z_DATA_ERROR: -3, Z_MEM_ERROR: -4, Z_BUF_ERROR: -5, Z_VERSION_ERROR: -6, Z_NO_COMPRESSION: 0,
  Z_BEST_SPEED: 1, Z_BEST_COMPRESSION: 9, Z_DEFAULT_COMPRESSION: -1, Z_FILTERED: 1, Z_HUFFMAN_ONLY: 2, Z_RLE: 3, Z_FIXED: 4,
  Z_DEFAULT_STRATEGY: 0, ZLIB_VERNUM: 4880, DEFLATE: 1, INFLATE: 2, GZIP: 3, GUNZIP: 4, DEFLATERAW: 5, INFLATERAW: 6, UNZIP: 7,
  BROTLI_DECODE: 8, BROTLI_ENCODE: 9, Z_MIN_WINDOWBITS: 8, Z_MAX_WINDOWBITS: 15, Z_DEFAULT_WINDOWBITS: 15, Z_MIN_CHUNK: 64,
  Z_MAX_CHUNK: Infinity, Z_DEFAULT_CHUNK: 16384, Z_MIN_MEMLEVEL: 1, Z_MAX_MEMLEVEL: 9, Z_DEFAULT_MEMLEVEL: 8, Z_MIN_LEVEL: -1,
  Z_MAX_LEVEL: 9, Z_DEFAULT_LEVEL: -1, BROTLI_OPERATION_PROCESS: 0, BROTLI_OPERATION_FLUSH: 1, BROTLI_OPERATION_FINISH: 2,
  BROTLI_OPERATION_EMIT_METADATA: 3, BROTLI_PARAM_MODE: 0, BROTLI_MODE_GENERIC: 0, BROTLI_MODE_TEXT: 1, BROTLI_MODE_FONT: 2,
  BROTLI_DEFAULT_MODE: 0, BROTLI_PARAM_QUALITY: 1, BROTLI_MIN_QUALITY: 0, BROTLI_MAX_QUALITY: 11, BROTLI_DEFAULT_QUALITY: 11,
  BROTLI_PARAM_LGWIN: 2, BROTLI_MIN_WINDOW_BITS: 10, BROTLI_MAX_WINDOW_BITS: 24, BROTLI_LARGE_MAX_WINDOW_BITS: 30,
  BROTLI_DEFAULT_WINDOW: 22, BROTLI_PARAM_LGBLOCK: 3, BROTLI_MIN_INPUT_BLOCK_BITS: 16, BROTLI_MAX_INPUT_BLOCK_BITS: 24,
  BROTLI_PARAM_DISABLE_LITERAL_CONTEXT_MODELING: 4, BROTLI_PARAM_SIZE_HINT: 5, BROTLI_PARAM_LARGE_WINDOW: 6, BROTLI_PARAM_NPOSTFIX: 7,
  BROTLI_PARAM_NDIRECT: 8, BROTLI_DECODER_RESULT_ERROR: 0, BROTLI_DECODER_RESULT_SUCCESS: 1, BROTLI_DECODER_RESULT_NEEDS_MORE_INPUT: 2,
  BROTLI_DECODER_RESULT_NEEDS_MORE_OUTPUT: 3, BROTLI_DECODER_PARAM_DISABLE_RING_BUFFER_REALLOCATION: 0,
  BROTLI_DECODER_PARAM_LARGE_WINDOW: 1, BROTLI_DECODER_NO_ERROR: 0, BROTLI_DECODER_SUCCESS: 1, BROTLI_DECODER_NEEDS_MORE_INPUT: 2,
  BROTLI_DECODER_NEEDS_MORE_OUTPUT: 3, BROTLI_DECODER_ERROR_FORMAT_EXUBERANT_NIBBLE: -1, BROTLI_DECODER_ERROR_FORMAT_RESERVED: -2,
  BROTLI_DECODER_ERROR_FORMAT_EXUBERANT_META_NIBBLE: -3, BROTLI_DECODER_ERROR_FORMAT_SIMPLE_HUFFMAN_ALPHABET: -4,
  BROTLI_DECODER_ERROR_FORMAT_SIMPLE_HUFFMAN_SAME: -5, BROTLI_DECODER_ERROR_FORMAT_CL_SPACE: -6,
  BROTLI_DECODER_ERROR_FORMAT_HUFFMAN_SPACE: -7, BROTLI_DECODER_ERROR_FORMAT_CONTEXT_MAP_REPEAT: -8,
  BROTLI_DECODER_ERROR_FORMAT_BLOCK_LENGTH_1: -9, BROTLI_DECODER_ERROR_FORMAT_BLOCK_LENGTH_2: -10,
  BROTLI_DECODER_ERROR_FORMAT_TRANSFORM: -11, BROTLI_DECODER_ERROR_FORMAT_DICTIONARY: -12,
  BROTLI_DECODER_ERROR_FORMAT_WINDOW_BITS: -13, BROTLI_DECODER_ERROR_FORMAT_PADDING_1: -14, BROTLI_DECODER_ERROR_FORMAT_PADDING_2: -15,
  BROTLI_DECODER_ERROR_FORMAT_DISTANCE: -16, BROTLI_DECODER_ERROR_DICTIONARY_NOT_SET: -19, BROTLI_DECODER_ERROR_INVALID_ARGUMENTS: -20,
  BROTLI_DECODER_ERROR_ALLOC_CONTEXT_MODES: -21, BROTLI_DECODER_ERROR_ALLOC_TREE_GROUPS: -22,
  BROTLI_DECODER_ERROR_ALLOC_CONTEXT_MAP: -25, BROTLI_DECODER_ERROR_ALLOC_RING_BUFFER_1: -26,
  BROTLI_DECODER_ERROR_ALLOC_RING_BUFFER_2: -27, BROTLI_DECODER_ERROR_ALLOC_BLOCK_TYPE_TREES: -30, BROTLI_DECODER_ERROR_UNREACHABLE: -31,
};
const constants = put({ __proto__: null }, values);

const codes = {
  Z_OK: 0, Z_STREAM_END: 1, Z_NEED_DICT: 2, Z_ERRNO: -1, Z_STREAM_ERROR: -2, Z_DATA_ERROR: -3, Z_MEM_ERROR: -4, Z_BUF_ERROR: -5,
  Z_VERSION_ERROR: -6,
  0: "Z_OK", 1: "Z_STREAM_END", 2: "Z_NEED_DICT", "-1": "Z_ERRNO", "-2": "Z_STREAM_ERROR", "-3": "Z_DATA_ERROR", "-4": "Z_MEM_ERROR",
  "-5": "Z_BUF_ERROR", "-6": "Z_VERSION_ERROR",
};

function failed(message, code, errno) {
  const error = new Error(message);
  put(error, { errno, code });
  return error;
}

const ENDS_EARLY = "the compressed data ends too early"; // isolates/offload/compression has these texts
const WRONG_SUM = "the checksum or the length of the compressed data is wrong";
const TAKES_LONG = "decompression takes too long while the worker waits: use the form with a callback, or a stream"; // as in subtle
const NEEDS_DICTIONARY = "the compressed data needs a dictionary";

// zlibError makes Node's error of a failure in Go's words.
function zlibError(text, format) {
  if (text === ENDS_EARLY) return failed("unexpected end of file", "Z_BUF_ERROR", -5);
  if (text === TAKES_LONG) return coded(Error, "ERR_OPERATION_FAILED", text);
  if (format === "brotli") return failed("Decompression failed", "ERR_BROTLI_DECODER_ERROR", -2);
  if (text === WRONG_SUM) return failed("incorrect data check", "Z_DATA_ERROR", -3);
  if (text === NEEDS_DICTIONARY) return failed("Missing dictionary", "Z_NEED_DICT", 2);
  if (primordials.StringPrototypeStartsWith(text, "the compressed data does not begin")) {
    return failed("incorrect header check", "Z_DATA_ERROR", -3);
  }
  return failed(primordials.StringPrototypeStartsWith(text, "the compressed data") ? "invalid data" : text, "Z_DATA_ERROR", -3);
}

const tooLarge = (most) => coded(RangeError, "ERR_BUFFER_TOO_LARGE", `Cannot create a Buffer larger than ${most} bytes`);

// inRange reads an option that is a number.
function inRange(value, name, least, most, otherwise) {
  if (value === undefined || (typeof value === "number" && NumberIsNaN(value))) return otherwise;
  if (typeof value !== "number") throw wrongType(name, "of type number", value);
  if (!NumberIsFinite(value)) throw outOfRange(name, "a finite number", value);
  if (value < least || value > most) {
    throw outOfRange(name, most === Infinity ? `>= ${least}` : `>= ${least} and <= ${most}`, value);
  }
  return value;
}

const MOST = 4294967296; // the longest result that options may allow

// common reads the options of all streams.
function common(options, flushes, out) {
  out.chunkSize = inRange(options?.chunkSize, "options.chunkSize", 64, Infinity, 16384);
  out.flush = inRange(options?.flush, "options.flush", 0, flushes, 0);
  out.finishFlush = inRange(options?.finishFlush, "options.finishFlush", 0, flushes, flushes === 3 ? 2 : 4);
  out.partly = flushes === 3 ? out.finishFlush !== 2 : out.finishFlush === 2; // data may end too early
  out.most = inRange(options?.maxOutputLength, "options.maxOutputLength", 1, MOST, MOST);
  out.info = !!options?.info;
  return out;
}

function zlibOptions(options, windowLeast) {
  const out = common(options, 5, { __proto__: null });
  const bits = options?.windowBits;
  if (!(windowLeast === 0 && (bits === 0 || bits === null))) inRange(bits ?? undefined, "options.windowBits", windowLeast === 0 ? 8 : windowLeast, 15, 15);
  const level = inRange(options?.level, "options.level", -1, 9, -1);
  inRange(options?.memLevel, "options.memLevel", 1, 9, 8);
  const strategy = inRange(options?.strategy, "options.strategy", 0, 4, 0);
  out.level = strategy === 2 && level !== 0 ? -2 : level;
  const dictionary = options?.dictionary;
  if (dictionary !== undefined) {
    if (!ArrayBufferIsView(dictionary) && !isArrayBuffer(dictionary)) {
      throw wrongType("options.dictionary", "an instance of Buffer, TypedArray, DataView, or ArrayBuffer", dictionary);
    }
    throw coded(Error, "ERR_METHOD_NOT_IMPLEMENTED", "node:zlib has no dictionaries in a worker: use an npm package in JavaScript, as pako");
  }
  return out;
}

function brotliOptions(options) {
  const out = common(options, 3, { __proto__: null });
  out.quality = 11;
  out.window = 0;
  const params = options?.params;
  if (params === undefined || params === null) return out;
  const keys = ReflectOwnKeys(params);
  for (let i = 0; i < keys.length; i++) {
    const key = +keys[i];
    if (!(key >= 0 && key <= 8)) throw coded(RangeError, "ERR_BROTLI_INVALID_PARAM", `${primordials.String(keys[i])} is not a valid Brotli parameter`);
    const value = params[keys[i]];
    if (typeof value !== "number" && typeof value !== "boolean") throw wrongType("options.params[key]", "of type number", value);
    if (key === 1) out.quality = value < 0 ? 0 : value > 11 ? 11 : +value;
    if (key === 2) out.window = value < 10 ? 10 : value > 24 ? 24 : +value;
  }
  return out;
}

internal.node.zlibParts = { __proto__: null, ENDS_EARLY, brotliOptions, codes, constants, inRange, tooLarge, values, zlibError, zlibOptions };
