// fetch/rewriter.js is HTMLRewriter of Cloudflare. Go finds the tokens that have handlers, in pieces of the page
// (isolates/offload/rewriter). The code here passes the pieces to Go while the reader wants bytes.

"use strict";

const {
  Int32Array, List, Map, StringPrototypeIncludes, StringPrototypeToLowerCase: toLowerCase, TypeError, TypedArrayPrototypeGetBuffer,
  TypedArrayPrototypeGetTag, Uint8Array, lengthOf, sealedProto, subarray,
} = primordials;
const {
  ResponseState, askOps, bodyStream, concatBytes, decodedResponseHeaders, defineInterface, illegalInvocation, isBodyUnusable, isObject,
  listDelete, listFrom, markHandled, newCapability, newHeaders, newResponse, peekResponse, readableState, requireArguments, rewriterRecords,
  sendOps, streams, toCallback, toDOMString,
} = internal;
const { after, finish, handle, pass } = rewriterRecords;
const { ReadRequest, acquireReader, readerRead, streamCancel } = streams;
const { ask, encode, send } = host;
const { REWRITE, REWRITE_CLOSE } = sendOps;

const PIECE = 262144; // bytes of input for one step; MaxPiece in isolates/offload/rewriter
const MOST_PARTS = 1024; // of all selectors: MaxParts
const MOST_BYTES = 65536; // of all selectors: MaxSelectors
const MOST_HANDLERS = 1024; // calls of on and onDocument: MaxEntries

// Bits of what is asked for.
const ELEMENTS = 1;
const COMMENTS = 2;
const TEXTS = 4;
const DOCTYPES = 8;

const MORE = 1; // flag of a step: the input so far has more

const NO_HEADERS = [];
const ELEMENT_NAMES = ["comments", "element", "text"];
const DOCUMENT_NAMES = ["comments", "doctype", "end", "text"];

// Entry is what one call of on or onDocument asks for.
class Entry {
  selector;
  self; // the object with the handlers
  comments = null;
  doctype = null;
  element = null;
  end = null;
  text = null;
  constructor(selector, self) {
    this.selector = selector;
    this.self = self;
  }
  bits() {
    return (this.element === null ? 0 : ELEMENTS) | (this.comments === null ? 0 : COMMENTS) | (this.text === null ? 0 : TEXTS) |
      (this.doctype === null ? 0 : DOCTYPES);
  }
}
sealedProto(Entry);

function readHandlers(entry, names, what) {
  const { self } = entry;
  if (self === undefined || self === null) return entry;
  if (!isObject(self)) throw new TypeError(`${what}: the handlers are not an object`);
  for (let i = 0; i < names.length; i++) {
    const handler = self[names[i]];
    if (handler !== undefined) entry[names[i]] = toCallback(handler, `${what}: ${names[i]}`);
  }
  return entry;
}

let lastId = 0;

// Rewriting is a page on its way.
class Rewriting {
  id = ++lastId;
  entries;
  documents;
  run = internal.acting();
  reader;
  feed = null;
  wanted = newCapability(); // settles when the reader wants bytes
  begun = false;
  over = false;
  stepping = false; // in advance
  closed = false;
  input = null; // a chunk that is not yet passed to Go
  at = 0; // in it
  ended = false; // the input has no more
  more = false; // Go has more of the input so far
  finished = false;
  bytes = null; // of the step
  from = 0; // where the bytes begin that are not yet in out
  out = new List();
  hidden = 0; // open elements whose content is removed
  open = new Map(); // id → ElementState: elements whose end tag is changed
  constructor(entries, documents, reader) {
    this.entries = entries;
    this.documents = documents;
    this.reader = reader;
  }
}
sealedProto(Rewriting);

// ---- the loop ----

async function rewrite(r) {
  try {
    for (;;) {
      await r.wanted.promise;
      if (r.over) break;
      r.wanted = newCapability();
      while (r.out.length === 0 && !r.finished && !r.over) await advance(r);
      if (r.over) break;
      const bytes = r.out.length === 1 ? r.out[0] : concatBytes(r.out);
      r.out = new List();
      if (lengthOf(bytes) > 0) r.feed.push(bytes);
      if (r.finished) {
        r.over = true;
        r.feed.close();
        break;
      }
    }
  } catch (error) {
    if (!r.over) {
      r.over = true;
      r.feed.error(error);
      if (!r.ended) markHandled(streamCancel(r.reader.stream, error));
    }
  }
  close(r);
}

// advance takes one more step of the page. Code that has changed Promise.prototype can have the loop go on before the step
// is over.
async function advance(r) {
  if (r.stepping) throw new TypeError("HTMLRewriter: a step of the page is under way");
  r.stepping = true;
  await takeStep(r);
  r.stepping = false;
}

async function takeStep(r) {
  if (!r.more && !r.ended && r.input === null) await read(r);
  if (r.over) return;
  const piece = r.more ? null : nextPiece(r);
  const last = r.ended && r.input === null;
  const answer = new List();
  await step(r, piece, last, answer);
  if (r.over) return;
  r.bytes = answer[0];
  r.from = 0;
  r.more = (answer[2][0] & MORE) !== 0;
  const numbers = new Int32Array(TypedArrayPrototypeGetBuffer(answer[1]));
  for (let i = 0; i < lengthOf(numbers); i = after(numbers, i)) {
    const handled = handle(r, numbers, i);
    if (handled !== null) await handled;
    if (r.over) return;
  }
  pass(r, lengthOf(r.bytes));
  r.bytes = null;
  if (last && !r.more) await finish(r);
}

function nextPiece(r) {
  const { input } = r;
  if (input === null) return null;
  const n = lengthOf(input);
  const to = r.at + PIECE < n ? r.at + PIECE : n;
  const piece = subarray(input, r.at, to);
  r.at = to;
  if (to === n) r.input = null;
  return piece;
}

// read waits for the next chunk of the input.
function read(r) {
  const done = newCapability();
  readerRead(r.reader, new ReadRequest((chunk) => {
    if (TypedArrayPrototypeGetTag(chunk) !== "Uint8Array") {
      done.reject(new TypeError("HTMLRewriter: a chunk of the body is not a Uint8Array"));
      return;
    }
    if (lengthOf(chunk) > 0) {
      r.input = chunk;
      r.at = 0;
    }
    done.resolve(undefined);
  }, () => {
    r.ended = true;
    done.resolve(undefined);
  }, (error) => {
    r.ended = true;
    done.reject(error);
  }));
  return done.promise;
}

// step passes a piece to Go. answer gets the bytes that are passed on, the records of their tokens, and flags.
function step(r, piece, last, answer) {
  const done = newCapability();
  if (r.run !== null && r.run.over) throw new TypeError("HTMLRewriter: the page belongs to an event that is over");
  const selectors = new List();
  const bits = new Uint8Array(r.begun ? 0 : r.entries.length + 1);
  if (!r.begun) {
    let all = 0;
    for (let i = 0; i < r.documents.length; i++) all |= r.documents[i].bits();
    for (let i = 0; i < r.entries.length; i++) {
      selectors[i] = r.entries[i].selector;
      bits[i] = r.entries[i].bits();
    }
    bits[r.entries.length] = all;
  }
  const first = !r.begun;
  r.begun = true;
  internal.beginWork(r.run, REWRITE, [r.id, first, selectors, bits, piece, last], (given) => {
    if (typeof given === "string") throw new TypeError(`HTMLRewriter: ${given}`);
    return given;
  }, (given) => {
    for (let i = 0; i < 3; i++) answer[i] = given[i];
    done.resolve(undefined);
  }, done.reject);
  return done.promise;
}

function close(r) {
  if (!r.begun || r.closed || (r.run !== null && r.run.over)) return;
  r.closed = true;
  internal.speakFor(r.run);
  send(REWRITE_CLOSE, r.id);
}

// ---- the interface ----

// checkCharset throws for a page that is not in UTF-8 by its content type.
function checkCharset(type) {
  const mime = type === null ? null : internal.extractMimeType(type);
  const charset = mime === null ? undefined : internal.mimeParam(mime, "charset");
  if (charset === undefined) return;
  const label = toLowerCase(charset);
  if (label !== "utf-8" && label !== "utf8" && label !== "us-ascii" && label !== "ascii") {
    throw new TypeError(`HTMLRewriter.transform: the charset is ${internal.inspectBrief(charset)}, and only pages in UTF-8 are read`);
  }
}

function transform(entries, documents, response) {
  const s = peekResponse(response);
  if (s === undefined) throw new TypeError("HTMLRewriter.transform: the argument is not a Response");
  if (isBodyUnusable(s)) throw new TypeError("HTMLRewriter.transform: the body has been read already, or is locked by a reader");
  const type = internal.contentTypeOf(s);
  if (type !== null && StringPrototypeIncludes(toLowerCase(type), "charset")) checkCharset(type);
  const input = bodyStream(s);
  if (input === null) return response;
  const out = new ResponseState(s.status, NO_HEADERS, null);
  out.statusText = s.statusText;
  out.cf = s.cf;
  const list = listFrom(decodedResponseHeaders(s));
  listDelete(list, "content-length");
  out.headers = newHeaders(list, false);
  const reader = acquireReader(readableState(input));
  reader.stream.disturbed = true;
  const r = new Rewriting(entries, documents, reader);
  r.feed = internal.newFeed((reason) => {
    if (r.over) return;
    r.over = true;
    r.wanted.resolve(undefined);
    if (!r.ended) markHandled(streamCancel(reader.stream, reason));
    close(r);
  }, () => { r.wanted.resolve(undefined); });
  out.stream = r.feed.stream;
  rewrite(r);
  return newResponse(out);
}

function copyOf(list) {
  const copy = new List();
  for (let i = 0; i < list.length; i++) copy[i] = list[i];
  return copy;
}

class HTMLRewriter {
  #entries = new List();
  #documents = new List();
  #parts = 0;
  #bytes = 0;
  #full() {
    if (this.#entries.length + this.#documents.length >= MOST_HANDLERS) {
      throw new TypeError(`HTMLRewriter: more than ${MOST_HANDLERS} calls of on and onDocument`);
    }
  }
  on(selector, handlers) {
    if (!isObject(this) || !(#entries in this)) throw illegalInvocation("HTMLRewriter");
    requireArguments(arguments.length, 2, "HTMLRewriter.on");
    this.#full();
    const text = toDOMString(selector);
    const parts = ask(askOps.SELECTOR, text);
    if (typeof parts === "string") throw new TypeError(`HTMLRewriter.on: ${parts}`);
    const n = parts[0] + parts[1] * 256;
    const entry = readHandlers(new Entry(text, handlers), ELEMENT_NAMES, "HTMLRewriter.on");
    if (this.#parts + n > MOST_PARTS) throw new TypeError(`HTMLRewriter.on: the selectors have more than ${MOST_PARTS} parts`);
    const bytes = this.#bytes + lengthOf(encode(text));
    if (bytes > MOST_BYTES) throw new TypeError(`HTMLRewriter.on: the selectors have more than ${MOST_BYTES} bytes`);
    this.#full(); // again: the getters of handlers may have called on
    this.#bytes = bytes;
    this.#parts += n;
    this.#entries[this.#entries.length] = entry;
    return this;
  }
  onDocument(handlers) {
    if (!isObject(this) || !(#entries in this)) throw illegalInvocation("HTMLRewriter");
    requireArguments(arguments.length, 1, "HTMLRewriter.onDocument");
    this.#full();
    const entry = readHandlers(new Entry(null, handlers), DOCUMENT_NAMES, "HTMLRewriter.onDocument");
    this.#full();
    this.#documents[this.#documents.length] = entry;
    return this;
  }
  transform(response) {
    if (!isObject(this) || !(#entries in this)) throw illegalInvocation("HTMLRewriter");
    requireArguments(arguments.length, 1, "HTMLRewriter.transform");
    return transform(copyOf(this.#entries), copyOf(this.#documents), response);
  }
}
defineInterface(HTMLRewriter, "HTMLRewriter");
