// bindings/caches.js is Cloudflare's Cache API: caches, CacheStorage and Cache. internal/env/bindings has the Go half, which
// decides what may be kept.

"use strict";

const {
  Error, List, Object, StringPrototypeIndexOf, StringPrototypeSlice, StringPrototypeToLowerCase, StringPrototypeTrim, TypeError, lengthOf, split,
} = primordials;
const {
  Request, ResponseState, TOKEN, callBinding, consume, defineInterface, headersList,
  illegalConstructor, illegalInvocation, isBodyUnusable, isNullBodyStatus, isObject, listFrom, listGet, newHeaders, newResponse,
  peekResponse, requestHeaders, requestState, requestURL, requireArguments, toUSVString,
} = internal;

const BYTES = 2; // of consume
const MAX_CACHED = 512 * 1024; // bytes of a body; internal/env/bindings

class Cache {
  #name;
  constructor(token = undefined, name) {
    if (token !== TOKEN) throw illegalConstructor();
    this.#name = name;
  }
  async match(request, options = undefined) {
    if (!isObject(this) || !(#name in this)) throw illegalInvocation("Cache");
    requireArguments(arguments.length, 1, "Cache.match");
    const ignoreMethod = toIgnoreMethod(options);
    const s = toRequest(request);
    if (s.method !== "GET" && !ignoreMethod) return undefined;
    const texts = keyOf(this.#name, s);
    const headers = headersList(requestHeaders(s));
    texts[2] = listGet(headers, "range") ?? "";
    texts[3] = listGet(headers, "if-none-match") ?? "";
    texts[4] = listGet(headers, "if-modified-since") ?? "";
    return await callBinding("cache", "caches", "match", texts, "", toResponse);
  }
  async put(request, response) {
    if (!isObject(this) || !(#name in this)) throw illegalInvocation("Cache");
    requireArguments(arguments.length, 2, "Cache.put");
    const s = toRequest(request);
    const r = peekResponse(response);
    if (r === undefined) throw new TypeError("Cache.put: the second argument is not a Response");
    if (s.method !== "GET") throw new TypeError("Cannot cache response to non-GET request.");
    if (r.status === 206) throw new TypeError("Cannot cache response to a range request (206 Partial Content).");
    const headers = internal.decodedResponseHeaders(r);
    if (variesByAll(headers)) throw new TypeError("Cannot cache response with 'Vary: *' header.");
    if (isBodyUnusable(r)) throw new TypeError("Cache.put: the body has been read already, or is locked by a reader");
    const texts = keyOf(this.#name, s);
    texts[2] = `${r.status}`;
    for (let i = 0; i < headers.length; i++) texts[texts.length] = headers[i];
    const body = await consume(r, BYTES);
    if (lengthOf(body) > MAX_CACHED) return undefined;
    return await callBinding("cache", "caches", "put", texts, body, () => undefined);
  }
  async delete(request, options = undefined) {
    if (!isObject(this) || !(#name in this)) throw illegalInvocation("Cache");
    requireArguments(arguments.length, 1, "Cache.delete");
    const ignoreMethod = toIgnoreMethod(options);
    const s = toRequest(request);
    if (s.method !== "GET" && !ignoreMethod) return false;
    return await callBinding("cache", "caches", "delete", keyOf(this.#name, s), "", (texts) => texts[0] === "true");
  }
  async add() { throw missing("add", "Cache", #name in Object(this)); }
  async addAll() { throw missing("addAll", "Cache", #name in Object(this)); }
  async keys() { throw missing("keys", "Cache", #name in Object(this)); }
  async matchAll() { throw missing("matchAll", "Cache", #name in Object(this)); }
}
defineInterface(Cache, "Cache");

class CacheStorage {
  #default;
  constructor(token = undefined) {
    if (token !== TOKEN) throw illegalConstructor();
    this.#default = new Cache(TOKEN, "default");
  }
  get default() {
    if (!isObject(this) || !(#default in this)) throw illegalInvocation("CacheStorage");
    return this.#default;
  }
  async open(name) {
    if (!isObject(this) || !(#default in this)) throw illegalInvocation("CacheStorage");
    requireArguments(arguments.length, 1, "CacheStorage.open");
    return new Cache(TOKEN, `named ${toUSVString(name)}`);
  }
  async delete() { throw missing("delete", "CacheStorage", #default in Object(this)); }
  async has() { throw missing("has", "CacheStorage", #default in Object(this)); }
  async keys() { throw missing("keys", "CacheStorage", #default in Object(this)); }
  async match() { throw missing("match", "CacheStorage", #default in Object(this)); }
}
defineInterface(CacheStorage, "CacheStorage");
internal.caches = new CacheStorage(TOKEN);

function missing(method, name, isOne) {
  if (!isOne) return illegalInvocation(name);
  return new Error(`Failed to execute '${method}' on '${name}': the method is not implemented.`);
}

function toIgnoreMethod(options) {
  if (options === undefined || options === null) return false;
  if (!isObject(options)) throw new TypeError("Cache: the options are not an object");
  const { ignoreMethod, ignoreSearch, ignoreVary } = options;
  if (ignoreSearch !== undefined) throw new Error("The 'ignoreSearch' field on 'CacheQueryOptions' is not implemented.");
  if (ignoreVary !== undefined) throw new Error("The 'ignoreVary' field on 'CacheQueryOptions' is not implemented.");
  return !!ignoreMethod;
}

function toRequest(input) {
  return requestState(internal.isRequest(input) ? input : new Request(input));
}

// keyOf returns the arguments that name a response: the name of the cache, and the URL without its fragment.
function keyOf(name, s) {
  const texts = new List();
  const url = requestURL(s);
  const hash = StringPrototypeIndexOf(url, "#");
  texts[0] = name;
  texts[1] = hash === -1 ? url : StringPrototypeSlice(url, 0, hash);
  return texts;
}

function variesByAll(headers) {
  for (let i = 0; i + 1 < headers.length; i += 2) {
    if (StringPrototypeToLowerCase(headers[i]) !== "vary") continue;
    const names = split(headers[i + 1], ",");
    for (let j = 0; j < names.length; j++) if (StringPrototypeTrim(names[j]) === "*") return true;
  }
  return false;
}

// toResponse makes the result of match(). texts are the status, the Content-Length or "", and the other headers.
function toResponse(texts, body) {
  if (texts.length === 0) return undefined;
  const status = +texts[0];
  const list = new List();
  for (let i = 2; i < texts.length; i++) list[list.length] = texts[i];
  list[list.length] = "cf-cache-status";
  list[list.length] = "HIT";
  if (texts[1] !== "") {
    list[list.length] = "content-length";
    list[list.length] = texts[1];
  }
  const s = new ResponseState(status, null, isNullBodyStatus(status) ? null : body);
  s.statusText = status === 200 ? "OK" : "";
  s.headers = newHeaders(listFrom(list), true);
  s.immutable = true;
  return newResponse(s);
}
