// runtime/ops.js names the numbers that cross between Go and JavaScript. The Go side is isolates/ops.go.

"use strict";

// entryOps are the messages of Go to JavaScript: entry(op, ...).
internal.entryOps = {
  __proto__: null,
  MODULE: 1, FETCH_EVENT: 2, TASK_EVENT: 3, SCHEDULED_EVENT: 4, TIMERS: 5, RESPONSE: 6, CHUNK: 7, FETCH_FAILED: 8,
  QUEUED: 9, ENV: 10, UNHANDLED: 11, DESCRIBE: 12, ENDED: 13, HOOK: 14, CREDIT: 15, ABORT: 16, HANDLED: 17, PART: 18, BATCH: 19, METHOD_EVENT: 20,
  PIPED: 21, GATHERED: 22, CANCEL: 23,
  BUILTIN: 29,
  WORKED: 30, SOCKET_OPENED: 31, SOCKET_MESSAGE: 32, SOCKET_SENT: 33, SOCKET_CLOSED: 34,
  UPLOAD_WANTED: 40, REDIRECT: 41, WHOLE: 42, CALLED: 50,
  TCP_OPENED: 60, TCP_DATA: 61, TCP_SENT: 62, TCP_CLOSED: 63, LOOKED_UP: 64,
};

// sendOps are the messages of JavaScript to Go: host.send(op, ...).
internal.sendOps = {
  __proto__: null,
  HANDLERS: 1, REPLY: 2, RESULT: 3, FAIL: 4, DRAINED: 5, RETRY: 6, NO_RETRY: 7, WAIT_FAILED: 8, LOG: 9, TIMER: 10,
  CLEAR: 11, FETCH: 12, FETCH_ABORT: 13, QUEUE: 14, UNCAUGHT: 15,
  ACTING: 16, HOOK_DONE: 17, BODY: 18, PULL: 19, DECIDE: 20, BATCH_DONE: 21, PIPE: 22, GATHER: 23,
  SUBTLE: 30, ZIP: 31, ZIP_CLOSE: 32, SOCKET_OPEN: 33, SOCKET_SEND: 34, SOCKET_END: 35, SOCKET_ACCEPT: 36,
  REWRITE: 37, REWRITE_CLOSE: 38,
  UPLOAD: 40, FETCH_MORE: 41, CALL: 50,
  TCP_OPEN: 60, TCP_SEND: 61, TCP_MORE: 62, TCP_END: 63, TCP_SECURE: 64, LOOK_UP: 65,
};

// askOps are the questions of JavaScript to Go. JavaScript waits for the answer: host.ask(op, ...).
internal.askOps = {
  __proto__: null,
  TIMING_SAFE_EQUAL: 3, DOMAIN_TO_ASCII: 4, FRAMES: 5,
  WASM: 6, // asked by v8x/wasm.cc
  WASM_IMPORT: 7, WASM_TAG: 8,
  WASM_DECODE: 9, // asked by v8x/wasm.cc
  SUBTLE: 30, DECODE: 31, SELECTOR: 32,
};

// subtleOps are the operations of SUBTLE, for both ask and send: those of Web Crypto, and from 44 on those of
// node:crypto. isolates/offload/subtle has the arguments.
internal.subtleOps = {
  __proto__: null,
  DIGEST: 1, HMAC: 2, HMAC_EQUAL: 3, ENCRYPT_CBC: 4, DECRYPT_CBC: 5, CTR: 6, ENCRYPT_GCM: 7, DECRYPT_GCM: 8, WRAP_KW: 9,
  UNWRAP_KW: 10, HKDF: 11, PBKDF2: 12,
  RSA_GENERATE: 13, RSA_IMPORT: 14, RSA_IMPORT_PARTS: 15, RSA_EXPORT: 16, RSA_PARTS: 17, SIGN_PKCS1: 18, VERIFY_PKCS1: 19,
  SIGN_PSS: 20, VERIFY_PSS: 21, ENCRYPT_OAEP: 22, DECRYPT_OAEP: 23,
  EC_GENERATE: 24, EC_IMPORT_POINT: 25, EC_IMPORT_SCALAR: 26, EC_IMPORT: 27, EC_EXPORT: 28, SIGN_ECDSA: 29, VERIFY_ECDSA: 30,
  ECDH: 31,
  OKP_GENERATE: 32, OKP_IMPORT_SEED: 33, OKP_IMPORT: 34, OKP_EXPORT: 35, SIGN_ED25519: 36, VERIFY_ED25519: 37, X25519: 38,
  SIGN_ED448: 39, VERIFY_ED448: 40, X448: 41,
  DIGEST_UPDATE: 42, DIGEST_END: 43,
  HASH_UPDATE: 44, HASH_END: 45, HMAC_UPDATE: 46, HMAC_END: 47, PBKDF2_STEP: 48, NODE_PBKDF2: 49, NODE_HKDF: 50, SCRYPT: 51, CRC32: 52,
  DEFLATE_PART: 53, INFLATE_ALL: 54, BROTLI: 55,
  BLOCKS: 56, CTR_FROM: 57, CHA_CHA20: 58, POLY1305: 59, GCM_ADDITIONAL: 60, GCM_UPDATE: 61, GCM_TAG: 62,
  KEY_READ: 63, KEY_WRITE: 64, KEY_GENERATE: 65, KEY_PARTS: 66, KEY_FROM_PARTS: 67, KEY_SIGN: 68, KEY_VERIFY: 69, KEY_ENCRYPT: 70,
  KEY_DECRYPT: 71, KEY_AGREE: 72,
};

// uncalled and handlerBits are the bits of HANDLERS. uncalled has the handlers that other runtimes call, and the
// handlers of the mode persistent when the mode is another one. See uncalled in check.go.
internal.uncalled = {
  __proto__: null, email: 64, tail: 128, tailStream: 256, trace: 512, connect: 1024, alarm: 2048, onIdle: 4096, onTerminate: 8192,
};
internal.handlerBits = { __proto__: null, fetch: 1, task: 2, scheduled: 4, onIdle: 8, onTerminate: 16, queue: 32, entrypoints: 16384 };

// decisions are those of DECIDE: lifecycle.Decision.
internal.decisions = { __proto__: null, UNDECIDED: 0, ACKED: 1, AGAIN: 2, FAILED: 3 };

// TOKEN is the first argument of some constructors. With it, only the runtime can construct objects that handler code
// cannot construct, or can construct only in the longer public way.
internal.TOKEN = Object.freeze({ __proto__: null });

// settings are those of the worker, which come with its env.
internal.settings = { __proto__: null, binaryType: "blob" };
