// fetch/body.js is the Body mixin. A body keeps its source (a string, bytes, a Blob) until handler code reads the
// property body. text() and json() of such a body never make a stream. State objects of Request and Response have the
// fields source, stream, used and shared (shared: a clone has the same bytes).

"use strict";

const {
  ArrayBufferPrototypeGetByteLength, JSONParse, Promise, PromiseReject, PromiseResolve, StringPrototypeCharCodeAt,
  StringPrototypeSlice, StringPrototypeToWellFormed, SymbolAsyncIterator, TypeError, TypedArrayPrototypeGetBuffer, TypedArrayPrototypeGetByteLength, Uint8Array,
  sealedProto,
} = primordials;
const { copyBytes, copyMembers, isBufferSource, toDOMString } = internal;
const { decode, encode } = host;

const TEXT = 0;
const JSON_VALUE = 1;
const BYTES = 2;
const BUFFER = 3;
const BLOB = 4;
const FORM = 5;

class Extracted {
  source = null;
  stream = null;
  type = null;
}
sealedProto(Extracted);

// extractBody is the Fetch standard's "extract a body". It returns the source of the body and its type.
function extractBody(value) {
  const out = new Extracted();
  if (typeof value === "string") {
    out.source = value;
    out.type = "text/plain;charset=UTF-8";
  } else if (typeof value === "object" && value !== null) extractObject(out, value);
  else {
    out.source = toDOMString(value);
    out.type = "text/plain;charset=UTF-8";
  }
  return out;
}

function extractObject(out, value) {
  if (internal.isReadableStream(value)) {
    if (internal.isStreamDisturbed(value) || internal.isStreamLocked(value)) {
      throw new TypeError("the body is a stream that is locked or was read from already");
    }
    out.stream = value;
  } else if (internal.isBlob(value)) {
    out.source = value;
    const type = internal.blobType(value);
    if (type !== "") out.type = type;
  } else if (isBufferSource(value)) out.source = copyBytes(value);
  else if (internal.isFormData(value)) {
    const form = internal.serializeMultipart(value);
    out.source = form.bytes;
    out.type = `multipart/form-data; boundary=${form.boundary}`;
  } else if (internal.isURLSearchParams(value)) {
    out.source = internal.serializeSearchParams(value);
    out.type = "application/x-www-form-urlencoded;charset=UTF-8";
  } else if (isAsyncIterable(value)) out.stream = internal.streamOfIterable(value);
  else {
    out.source = toDOMString(value);
    out.type = "text/plain;charset=UTF-8";
  }
}

// isAsyncIterable reports whether a body is made of the pieces that an object gives one after the other.
function isAsyncIterable(value) {
  return typeof value[SymbolAsyncIterator] === "function";
}

// toBody converts a value for a body but does not extract the body. A value that is not a body type becomes text.
function toBody(value) {
  if (typeof value === "string" || value === undefined || value === null) return value;
  const kept = typeof value === "object" && (internal.isReadableStream(value) || internal.isBlob(value) || isBufferSource(value) ||
    internal.isFormData(value) || internal.isURLSearchParams(value) || isAsyncIterable(value));
  return kept ? value : toDOMString(value);
}

function isUsed(state) {
  return state.stream === null ? state.used : internal.isStreamDisturbed(state.stream);
}

function isUnusable(state) {
  return state.stream === null ? state.used : internal.isStreamDisturbed(state.stream) || internal.isStreamLocked(state.stream);
}

// sourceBytes returns a source as bytes that the caller can keep. It copies shared bytes.
function sourceBytes(source, shared) {
  if (source === null) return new Uint8Array(0);
  if (typeof source === "string") return encode(source);
  if (internal.isBlob(source)) return internal.blobBytes(source);
  return shared ? new Uint8Array(source) : source;
}

// isEmptySource reports whether a source has no bytes.
function isEmptySource(source) {
  if (typeof source === "string") return source === "";
  return TypedArrayPrototypeGetByteLength(internal.isBlob(source) ? internal.blobBytes(source) : source) === 0;
}

function stripBOM(text) {
  return text.length > 0 && StringPrototypeCharCodeAt(text, 0) === 0xfeff ? StringPrototypeSlice(text, 1) : text;
}

function sourceText(source) {
  if (source === null) return "";
  if (typeof source === "string") return stripBOM(StringPrototypeToWellFormed(source));
  return stripBOM(decode(internal.isBlob(source) ? internal.blobBytes(source) : source, false));
}

// convert returns the value that a body method promises, made from a source.
function convert(kind, source, shared, state) {
  switch (kind) {
    case TEXT: return sourceText(source);
    case JSON_VALUE: return JSONParse(sourceText(source));
    case BYTES: return exact(sourceBytes(source, shared));
    case BUFFER: return TypedArrayPrototypeGetBuffer(exact(sourceBytes(source, shared)));
    case BLOB: return internal.newBlob(sourceBytes(source, shared), internal.bodyMimeType(state));
    default: return internal.parseFormBody(state, sourceBytes(source, shared));
  }
}

// exact makes sure that the buffer of the bytes has no other data.
function exact(bytes) {
  const whole = ArrayBufferPrototypeGetByteLength(TypedArrayPrototypeGetBuffer(bytes)) === TypedArrayPrototypeGetByteLength(bytes);
  return whole ? bytes : new Uint8Array(bytes);
}

function consume(state, kind) {
  if (isUnusable(state)) return PromiseReject(new TypeError("the body has been read already, or is locked by a reader"));
  if (state.stream !== null) return consumeStream(state, kind);
  try {
    const { source } = state;
    if (source !== null) state.used = true;
    return PromiseResolve(convert(kind, source, state.shared, state));
  } catch (error) {
    return PromiseReject(error);
  }
}

function consumeStream(state, kind) {
  const at = internal.stackHere();
  return new Promise((resolve, reject) => {
    const fail = (error) => { reject(internal.withStack(at, error)); };
    internal.readAll(state.stream, Infinity, (bytes) => {
      try {
        resolve(convert(kind, bytes, false, state));
      } catch (error) {
        fail(error);
      }
    }, fail);
  });
}

// bodyStream is the getter of body. It makes the stream on the first call.
function bodyStream(state) {
  if (state.stream !== null) return state.stream;
  if (state.source === null) return null;
  if (state.used) {
    state.stream = internal.usedStream();
    return state.stream;
  }
  const bytes = exact(sourceBytes(state.source, state.shared));
  state.stream = internal.streamOfBytes(bytes);
  state.source = null;
  return state.stream;
}

// cloneBody copies body fields from one state to another. It tees streams.
function cloneBody(from, to) {
  if (from.stream !== null) {
    const branches = internal.teeForClone(from.stream);
    from.stream = branches[0];
    to.stream = branches[1];
    return;
  }
  to.source = from.source;
  from.shared = to.shared = true;
}

// defineBody adds the mixin's members to an interface. stateOf(value) returns the state or throws.
function defineBody(Class, stateOf) {
  const call = (self, kind) => {
    let state;
    try {
      state = stateOf(self);
    } catch (error) {
      return PromiseReject(error);
    }
    return consume(state, kind);
  };
  const members = {
    get body() { return bodyStream(stateOf(this)); },
    get bodyUsed() { return isUsed(stateOf(this)); },
    arrayBuffer() { return call(this, BUFFER); },
    blob() { return call(this, BLOB); },
    bytes() { return call(this, BYTES); },
    formData() { return call(this, FORM); },
    json() { return call(this, JSON_VALUE); },
    text() { return call(this, TEXT); },
  };
  copyMembers(Class, members);
}

primordials.ObjectAssign(internal, {
  bodyBuffer: (state) => consume(state, BUFFER), bodyStream, cloneBody, consume, defineBody, extractBody, toBody, isBodyUnusable: isUnusable, isBodyUsed: isUsed, sourceBytes, isEmptySource, stripBOM,
});
