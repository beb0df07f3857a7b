// fetch/headers.js is Headers of the Fetch standard. Names are in lower case, as in HTTP/2 and in iteration. The list
// also stores the spelling that a handler used, because fetch() sends that spelling. No names are forbidden, because
// server code must set cookies and hosts. Only the immutable guard rejects changes.

"use strict";

const {
  ArrayPrototypeSort, List, Map, MapPrototypeDelete, MapPrototypeForEach, MapPrototypeGet, MapPrototypeHas, MapPrototypeSet,
  StringPrototypeCharCodeAt, StringPrototypeIndexOf, StringPrototypeSlice, StringPrototypeToLowerCase, SymbolIterator,
  TypeError, sealedProto, uncurryThis,
} = primordials;
const {
  TOKEN, defineInterface, definePairIterator, illegalInvocation, isObject, requireArguments, toByteString, toRecord,
  toSequence,
} = internal;

// nameKinds classifies each ASCII code in a header name: 0 not allowed, 1 allowed, 2 an upper-case letter. A snapshot
// cannot have a typed array of this size (v8x.Snapshot).
const nameKinds = new Array(128).fill(0);
for (let i = 33; i < 127; i++) nameKinds[i] = 1;
for (const c of '"(),/:;<=>?@[\\]{}') nameKinds[c.charCodeAt(0)] = 0;
for (let i = 65; i <= 90; i++) nameKinds[i] = 2;

function isToken(text) {
  for (let i = 0; i < text.length; i++) {
    const c = StringPrototypeCharCodeAt(text, i);
    if (c > 127 || nameKinds[c] === 0) return false;
  }
  return text.length > 0;
}

// lowerName checks a header name and returns it in lower case.
function lowerName(name) {
  let upper = name.length === 0;
  for (let i = 0; i < name.length; i++) {
    const c = StringPrototypeCharCodeAt(name, i);
    const kind = c > 127 ? 0 : nameKinds[c];
    if (kind === 1) continue;
    if (kind === 0) throw new TypeError(`invalid header name ${internal.inspectBrief(name)}`);
    upper = true;
  }
  if (name.length === 0) throw new TypeError("invalid header name ''");
  return upper ? StringPrototypeToLowerCase(name) : name;
}

function isHTTPSpace(c) {
  return c === 32 || c === 9 || c === 10 || c === 13;
}

// breaksLine reports whether there is a NUL, LF or CR from start to end. V8 searches long texts by blocks of characters.
function breaksLine(value, start, end) {
  if (end - start > 64) return finds(value, "\0", start, end) || finds(value, "\n", start, end) || finds(value, "\r", start, end);
  for (let i = start; i < end; i++) {
    const c = StringPrototypeCharCodeAt(value, i);
    if (c === 0 || c === 10 || c === 13) return true;
  }
  return false;
}

function finds(value, what, start, end) {
  const at = StringPrototypeIndexOf(value, what, start);
  return at >= 0 && at < end;
}

// cleanValue strips whitespace at both ends and checks the rest.
function cleanValue(value, name) {
  let start = 0;
  let end = value.length;
  while (start < end && isHTTPSpace(StringPrototypeCharCodeAt(value, start))) start++;
  while (end > start && isHTTPSpace(StringPrototypeCharCodeAt(value, end - 1))) end--;
  if (breaksLine(value, start, end)) throw new TypeError(`invalid value of header ${name}`);
  return start === 0 && end === value.length ? value : StringPrototypeSlice(value, start, end);
}

// ---- the list: flat name, value, name, value ----

class HeaderList {
  flat;
  sorted = null;
  coded = false; // a body that JavaScript has of the response with this list is not in its content-encoding
  spelled = null; // the spelling of names that a handler wrote with capitals, for fetch()
  constructor(flat = new List()) {
    this.flat = flat;
  }
}
sealedProto(HeaderList);

function listAppend(list, name, value) {
  const { flat } = list;
  flat[flat.length] = name;
  flat[flat.length] = value;
  list.sorted = null;
}

// spell stores the first spelling of a name.
function spell(list, name, written) {
  if (name === written) return;
  list.spelled ??= new Map();
  if (!MapPrototypeHas(list.spelled, name)) MapPrototypeSet(list.spelled, name, written);
}

function listGet(list, name) {
  const { flat } = list;
  let out = null;
  for (let i = 0; i < flat.length; i += 2) {
    if (flat[i] === name) out = out === null ? flat[i + 1] : `${out}${separator(name)}${flat[i + 1]}`;
  }
  return out;
}

// separator joins the values of a name. Servers split a Cookie header at semicolons only (RFC 6265, RFC 9113 §8.2.3).
function separator(name) {
  return name === "cookie" ? "; " : ", ";
}

function listHas(list, name) {
  const { flat } = list;
  for (let i = 0; i < flat.length; i += 2) {
    if (flat[i] === name) return true;
  }
  return false;
}

// listDelete removes a name from position `from` on and keeps the order.
function listDelete(list, name, from = 0) {
  const { flat } = list;
  let to = from;
  for (let i = from; i < flat.length; i += 2) {
    if (flat[i] === name) continue;
    flat[to] = flat[i];
    flat[to + 1] = flat[i + 1];
    to += 2;
  }
  flat.length = to;
  list.sorted = null;
  if (from === 0 && list.spelled !== null) MapPrototypeDelete(list.spelled, name);
}

function listSet(list, name, value) {
  const { flat } = list;
  for (let i = 0; i < flat.length; i += 2) {
    if (flat[i] !== name) continue;
    flat[i + 1] = value;
    listDelete(list, name, i + 2);
    return;
  }
  listAppend(list, name, value);
}

// recode takes it that a handler which sets the coding has coded the body.
function recode(list, name) {
  if (name === "content-encoding") list.coded = false;
}

// decodedHeaders returns the flat list for a body that JavaScript has: the runtime has decoded it.
function decodedHeaders(list) {
  const { flat } = list;
  if (!list.coded) return flat;
  const out = new List();
  for (let i = 0; i < flat.length; i += 2) {
    if (flat[i] === "content-encoding" || flat[i] === "content-length") continue;
    out[out.length] = flat[i];
    out[out.length] = flat[i + 1];
  }
  return out;
}

// sortAndCombine returns the list for iteration: names in order, values of one name joined, each set-cookie separate.
function sortAndCombine(list) {
  if (list.sorted !== null) return list.sorted;
  const { flat } = list;
  const names = new List();
  const values = new Map();
  const cookies = new List();
  for (let i = 0; i < flat.length; i += 2) {
    const name = flat[i];
    if (name === "set-cookie") {
      cookies[cookies.length] = flat[i + 1];
      if (cookies.length === 1) names[names.length] = name;
      continue;
    }
    const before = MapPrototypeGet(values, name);
    if (before === undefined) names[names.length] = name;
    MapPrototypeSet(values, name, before === undefined ? flat[i + 1] : `${before}${separator(name)}${flat[i + 1]}`);
  }
  ArrayPrototypeSort(names, (a, b) => (a < b ? -1 : a > b ? 1 : 0));
  const out = new List();
  for (let i = 0; i < names.length; i++) {
    if (names[i] === "set-cookie") {
      for (let j = 0; j < cookies.length; j++) {
        out[out.length] = "set-cookie";
        out[out.length] = cookies[j];
      }
      continue;
    }
    out[out.length] = names[i];
    out[out.length] = MapPrototypeGet(values, names[i]);
  }
  return (list.sorted = out);
}

// copyList returns a new list with the contents of another.
function copyList(from) {
  const list = new HeaderList();
  list.coded = from.coded;
  for (let i = 0; i < from.flat.length; i++) list.flat[i] = from.flat[i];
  if (from.spelled !== null) {
    const spelled = (list.spelled = new Map());
    MapPrototypeForEach(from.spelled, (written, name) => { MapPrototypeSet(spelled, name, written); });
  }
  return list;
}

// sentHeaders returns the flat list that is sent. Each name is in it once, in its original spelling, with its values
// joined. Each set-cookie is separate. A referrer that is not null replaces an existing one.
function sentHeaders(flat, spelled, referrer) {
  const out = new List();
  const places = new Map();
  for (let i = 0; i < flat.length; i += 2) {
    const name = flat[i];
    if (referrer !== null && name === "referer") continue;
    const place = name === "set-cookie" ? undefined : MapPrototypeGet(places, name);
    if (place !== undefined) {
      out[place] += `${separator(name)}${flat[i + 1]}`;
      continue;
    }
    MapPrototypeSet(places, name, out.length + 1);
    out[out.length] = (spelled === null ? undefined : MapPrototypeGet(spelled, name)) ?? name;
    out[out.length] = flat[i + 1];
  }
  if (referrer !== null) {
    out[out.length] = "referer";
    out[out.length] = referrer;
  }
  return out;
}

// listFrom makes a list from a flat array of Go or of the runtime.
function listFrom(flat) {
  const list = new HeaderList();
  if (flat === null || flat === undefined) return list;
  for (let i = 0; i + 1 < flat.length; i += 2) listAppend(list, StringPrototypeToLowerCase(flat[i]), flat[i + 1]);
  return list;
}

// ---- the interface ----

const MUTABLE = false;
const IMMUTABLE = true;
let stateOf;

class Headers {
  #list;
  #immutable;
  constructor(init = undefined, list = undefined, immutable = undefined) {
    if (init === TOKEN) {
      this.#list = list;
      this.#immutable = immutable;
      return;
    }
    this.#list = init === undefined ? new HeaderList() : checkHeaders(toHeaderList(init));
    this.#immutable = MUTABLE;
  }
  static {
    stateOf = (value) => {
      if (!isObject(value) || !(#list in value)) throw illegalInvocation("Headers");
      return value.#list;
    };
    internal.isHeaders = (value) => isObject(value) && #list in value;
    internal.setHeadersImmutable = (value) => { value.#immutable = IMMUTABLE; };
  }
  append(name, value) {
    const list = stateOf(this);
    requireArguments(arguments.length, 2, "Headers.append");
    const key = toByteString(name, "the header name");
    const text = toByteString(value, "the header value");
    const lower = lowerName(key);
    const clean = cleanValue(text, lower);
    this.#refuseImmutable();
    recode(list, lower);
    listAppend(list, lower, clean);
    spell(list, lower, key);
  }
  delete(name) {
    const list = stateOf(this);
    requireArguments(arguments.length, 1, "Headers.delete");
    const lower = lowerName(toByteString(name, "the header name"));
    this.#refuseImmutable();
    listDelete(list, lower);
  }
  get(name) {
    const list = stateOf(this);
    requireArguments(arguments.length, 1, "Headers.get");
    return listGet(list, lowerName(toByteString(name, "the header name")));
  }
  getSetCookie() {
    const { flat } = stateOf(this);
    const out = [];
    for (let i = 0; i < flat.length; i += 2) {
      if (flat[i] === "set-cookie") internal.appendArray(out, flat[i + 1]);
    }
    return out;
  }
  has(name) {
    const list = stateOf(this);
    requireArguments(arguments.length, 1, "Headers.has");
    return listHas(list, lowerName(toByteString(name, "the header name")));
  }
  set(name, value) {
    const list = stateOf(this);
    requireArguments(arguments.length, 2, "Headers.set");
    const key = toByteString(name, "the header name");
    const text = toByteString(value, "the header value");
    const lower = lowerName(key);
    const clean = cleanValue(text, lower);
    this.#refuseImmutable();
    recode(list, lower);
    listSet(list, lower, clean);
    spell(list, lower, key);
  }
  #refuseImmutable() {
    if (this.#immutable) throw new TypeError("these headers cannot be changed: copy them with new Headers(headers)");
  }
}
definePairIterator(Headers, "Headers", (value) => sortAndCombine(stateOf(value)));
defineInterface(Headers, "Headers");
const iterate = Headers.prototype[SymbolIterator];

// toHeaderList converts a HeadersInit. The caller passes the result to checkHeaders after it has converted the
// surrounding dictionary.
function toHeaderList(init) {
  if (!isObject(init)) throw new TypeError("the headers are neither a sequence of pairs nor a record");
  const method = init[SymbolIterator];
  if (method === iterate && internal.isHeaders(init)) {
    const list = new HeaderList();
    const sorted = sortAndCombine(stateOf(init));
    list.coded = stateOf(init).coded;
    for (let i = 0; i < sorted.length; i++) list.flat[i] = sorted[i];
    return list;
  }
  if (method === undefined || method === null) return new HeaderList(toRecord(init, byteString, byteString, "the headers"));
  const pairs = toSequence(init, (pair) => toSequence(pair, byteString, "a header pair"), "the headers", method);
  const list = new HeaderList();
  for (let i = 0; i < pairs.length; i++) {
    if (pairs[i].length !== 2) throw new TypeError("a header pair does not have exactly two items");
    listAppend(list, pairs[i][0], pairs[i][1]);
  }
  return list;
}

// checkHeaders is the Fetch standard's "fill" of an empty list. It turns the result of toHeaderList into a list of
// valid headers.
function checkHeaders(list) {
  const { flat } = list;
  for (let i = 0; i < flat.length; i += 2) {
    const written = flat[i];
    flat[i] = lowerName(written);
    spell(list, flat[i], written);
    flat[i + 1] = cleanValue(flat[i + 1], flat[i]);
  }
  return list;
}

function byteString(value) {
  return toByteString(value, "a header's name or value");
}

internal.addInspector(internal.isHeaders, (value) => sortAndCombine(stateOf(value)));

// flatHeaders returns a flat list of any HeadersInit, to send to Go.
internal.flatHeaders = (init) => checkHeaders(toHeaderList(init)).flat;
internal.newHeaders = (list, immutable) => new Headers(TOKEN, list, immutable);
primordials.ObjectAssign(internal, {
  getHeader: uncurryThis(Headers.prototype.get), setHeader: uncurryThis(Headers.prototype.set),
  HeaderList, Headers, checkHeaders, cleanValue, copyList, decodedHeaders, headersList: stateOf, isToken, listAppend, listDelete, listFrom, listGet,
  listHas, listSet, lowerName, sentHeaders, toHeaderList,
});
