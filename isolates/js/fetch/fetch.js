// fetch/fetch.js is fetch(). Each request goes to Go, which dials and checks addresses. Go reports a redirect, and
// the code here follows it. The head of the response and the chunks of its body arrive under the request's id, as
// fast as the code reads them. Ids never restart in a context. data: and blob: URLs get their responses here.

"use strict";

const {
  JSONStringify, Map, MapPrototypeDelete, MapPrototypeGet, MapPrototypeSet,
  PromiseReject, PromiseResolve,
  StringPrototypeIndexOf, StringPrototypeSlice, StringPrototypeStartsWith, TypeError, WeakMap, WeakMapPrototypeGet,
  WeakMapPrototypeSet, sealedProto,
} = primordials;
const {
  Referrer, Request, ResponseState, defineOperation, isNullBodyStatus, listFrom, newCapability, noop, onAbort, requestHeaders,
  requestState, requestURL, requireArguments, sendOps, signalState, upon,
} = internal;
const { send } = host;
const { FETCH, FETCH_ABORT, FETCH_MORE } = sendOps;

class Fetch {
  id;
  url;
  record; // the URL as a record
  method;
  headers; // a flat list
  spelled; // a Map from names to their spelling in the request, or null
  mode; // the redirect mode
  through; // the Through that answers; null = the network
  cf; // of the request, as JSON; "" = it has none, or nobody is told
  referrer;
  redirects = 0; // the number of followed redirects
  answer; // the capability of fetch()'s promise, null once settled
  upload; // the request's body, null when there is none
  feed = null; // the response's body
  sent = false;
  run = internal.acting();
  at = internal.stackHere(); // where it was begun
  unlisten = noop;
  constructor(id, url, s, through) {
    this.id = id;
    this.through = through;
    this.cf = isService(this) && s.cf !== undefined ? JSONStringify(s.cf) ?? "" : "";
    this.url = url;
    this.record = internal.parseURL(url, null);
    this.method = s.method;
    const list = internal.copyList(internal.headersList(requestHeaders(s)));
    this.headers = list.flat;
    this.spelled = list.spelled;
    this.mode = s.extras.redirect;
    this.referrer = new Referrer(s.extras.referrer, s.extras.referrerPolicy);
    this.answer = newCapability();
    this.upload = internal.newUpload(this, s, (error) => {
      if (this.sent) sendAbort(this);
      fail(this, error);
    });
  }
  // drop cancels and removes the request's body.
  drop(reason = undefined) {
    if (this.upload !== null) this.upload.cancel(reason);
    this.upload = null;
  }
}
sealedProto(Fetch);

// isService reports whether another worker answers: the request and the response arrive there as they were made.
function isService(f) {
  return f.through !== null && f.through.kind === "services";
}

const fetches = new Map();

// throwIfAborted is the first step of a fetch.
function throwIfAborted(s) {
  if (s.signal === null || !signalState(s.signal).aborted) return;
  const { reason } = signalState(s.signal);
  cancelUpload(s.stream, reason);
  throw reason;
}

function cancelUpload(stream, reason) {
  if (stream !== null) internal.markHandled(internal.cancelStream(stream, reason));
}

// Through names the binding that answers a request.
class Through {
  kind;
  name;
  constructor(kind, name) {
    this.kind = kind;
    this.name = name;
  }
}
sealedProto(Through);
internal.Through = Through;

// begin starts a fetch over the network or through a binding.
function begin(request, through = null) {
  const s = requestState(request);
  const url = requestURL(s);
  throwIfAborted(s);
  if (!StringPrototypeStartsWith(url, "http:") && !StringPrototypeStartsWith(url, "https:")) {
    throw new TypeError(`fetch: ${internal.inspectBrief(url)} is neither http nor https`);
  }
  if (internal.eventIsOver()) throw new TypeError("fetch: the event is over");
  const f = new Fetch(internal.nextRequestId(), url, s, through);
  const { promise } = f.answer; // read now, because an immediate failure clears f.answer
  MapPrototypeSet(fetches, f.id, f);
  if (s.signal !== null) f.unlisten = onAbort(s.signal, (reason) => abort(f, reason));
  if (f.upload === null) transmit(f);
  else f.upload.begin(() => transmit(f));
  return promise;
}

internal.fetch = begin;

function transmit(f) {
  if (MapPrototypeGet(fetches, f.id) !== f) return;
  const headers = internal.sentHeaders(f.headers, f.spelled, f.referrer.sent(f.record));
  const { upload } = f;
  f.sent = true;
  internal.speakFor(f.run);
  try {
    send(FETCH, f.id, f.method, f.url, headers, upload === null ? null : upload.inline(), f.mode,
      upload === null ? 0 : upload.length(), f.redirects > 0,
      f.through === null ? "" : f.through.kind, f.through === null ? "" : f.through.name,
      upload === null ? -1 : upload.source, f.cf);
  } catch (error) {
    f.sent = false;
    fail(f, error);
  }
}

function fail(f, error) {
  MapPrototypeDelete(fetches, f.id);
  f.unlisten();
  f.drop(error);
  if (f.answer !== null) {
    const { reject } = f.answer;
    f.answer = null;
    reject(error);
  } else if (f.feed !== null) f.feed.error(error);
}

// abort also discards the part of a body that arrived but was not read.
function abort(f, reason) {
  if (MapPrototypeGet(fetches, f.id) !== f) {
    if (f.feed !== null) f.feed.error(reason);
    return;
  }
  if (f.sent) sendAbort(f);
  fail(f, reason);
}

function sendAbort(f) {
  internal.speakFor(f.run);
  send(FETCH_ABORT, f.id);
}

// uploadWanted handles a request from Go for more of the request's body.
internal.uploadWanted = (id, offset) => {
  const f = MapPrototypeGet(fetches, id);
  if (f !== undefined && f.upload !== null) internal.startIn(f.run, () => { f.upload.want(offset); });
};

// fetchRedirect handles a redirect that the code must follow. The redirected request is over.
internal.fetchRedirect = (id, status, location, policy, careful) => {
  const f = MapPrototypeGet(fetches, id);
  if (f === undefined || f.answer === null) return;
  f.sent = false;
  try {
    internal.redirect(f, status, location, policy, careful);
  } catch (error) {
    fail(f, error);
    return;
  }
  MapPrototypeDelete(fetches, id);
  f.id = internal.nextRequestId();
  MapPrototypeSet(fetches, f.id, f);
  transmit(f);
};

// fetchResponse handles the head of a response. waits says that its body stays in Go until something asks for it,
// coded that it is decoded for who reads it.
internal.fetchResponse = (id, status, statusText, headers, waits, coded) => {
  const f = MapPrototypeGet(fetches, id);
  if (f === undefined || f.answer === null) return;
  const s = newState(f, status, statusText, headers);
  internal.headersList(s.headers).coded = coded;
  if (f.method !== "HEAD" && !isNullBodyStatus(status)) {
    f.feed = internal.newFeed(() => {
      if (MapPrototypeGet(fetches, f.id) !== f) return;
      sendAbort(f);
      over(f);
    }, () => {
      if (MapPrototypeGet(fetches, f.id) !== f) return;
      internal.speakFor(f.run);
      send(FETCH_MORE, f.id);
    }, waits && f.run !== null ? new internal.streams.Source(f.run, f.id, -1) : null);
    s.stream = f.feed.stream;
  }
  const { resolve } = f.answer;
  f.answer = null;
  resolve(internal.newResponse(s));
};

// fetchWhole handles a response with its body, after which nothing follows.
internal.fetchWhole = (id, status, statusText, headers, bytes) => {
  const f = MapPrototypeGet(fetches, id);
  if (f === undefined || f.answer === null) return;
  const s = newState(f, status, statusText, headers);
  if (f.method !== "HEAD" && !isNullBodyStatus(status)) s.source = bytes;
  const { resolve } = f.answer;
  f.answer = null;
  over(f);
  resolve(internal.newResponse(s));
};

function newState(f, status, statusText, headers) {
  const s = new ResponseState(status, null, null);
  s.type = isService(f) ? "default" : "basic";
  s.statusText = statusText;
  s.url = withoutFragment(f.url);
  s.redirected = f.redirects > 0;
  s.headers = internal.newHeaders(listFrom(headers), true);
  s.immutable = true;
  return s;
}

// over forgets a fetch about which Go sends nothing more. It stops a body that is still being sent.
function over(f) {
  MapPrototypeDelete(fetches, f.id);
  f.at = null; // it keeps the functions of the stack, and what they know
  f.unlisten();
  f.drop();
}

function withoutFragment(url) {
  const hash = StringPrototypeIndexOf(url, "#");
  return hash === -1 ? url : StringPrototypeSlice(url, 0, hash);
}
internal.withoutFragment = withoutFragment;

// fetchChunk handles a piece of a response's body, or null at its end.
internal.fetchChunk = (id, bytes) => {
  const f = MapPrototypeGet(fetches, id);
  if (f === undefined) return;
  if (bytes !== null) {
    if (f.feed !== null) f.feed.push(bytes);
    return;
  }
  const { unlisten } = f;
  f.unlisten = noop;
  over(f);
  if (f.feed !== null) f.feed.close();
  if (f.feed === null || !f.feed.isOpen()) unlisten();
};

const codes = new WeakMap(); // the codes that Node has for failures, for node:http; "" = there is none
internal.failureCode = (error) => (internal.isObject(error) ? WeakMapPrototypeGet(codes, error) : undefined) ?? "";

// fetchFailed handles a request without a complete response. thrown says that message is what a service threw.
internal.fetchFailed = (id, message, thrown, code) => {
  const f = MapPrototypeGet(fetches, id);
  if (f === undefined) return;
  const error = internal.withStack(f.at, thrown ? internal.remoteError(message) : new TypeError(message));
  if (code) WeakMapPrototypeSet(codes, error, code);
  fail(f, error);
};

// forgetFetches removes the fetches of a past event. Go has cancelled them.
internal.onForget((run) => { internal.forgetIn(fetches, run); });

function fetchData(s) {
  throwIfAborted(s);
  const response = internal.dataResponse(withoutFragment(requestURL(s)));
  if (response === null) throw new TypeError("fetch: the data: URL is not well-formed");
  if (s.method === "HEAD") response.source = null;
  return PromiseResolve(internal.newResponse(response));
}

function fetchBlob(s) {
  throwIfAborted(s);
  if (s.method !== "GET") throw new TypeError("fetch: a blob: URL is only for GET");
  if (s.blob === null) throw new TypeError("fetch: the blob: URL is not known here, or was revoked");
  return PromiseResolve(internal.newResponse(internal.blobResponse(s.blob, withoutFragment(requestURL(s)))));
}

// answerHere returns the promise of a response that needs no network, or null.
function answerHere(s) {
  const url = requestURL(s);
  if (StringPrototypeStartsWith(url, "data:")) return fetchData(s);
  return StringPrototypeStartsWith(url, "blob:") ? fetchBlob(s) : null;
}

// verified returns a promise of the same response. It reads the whole body and rejects if the body does not match
// integrity.
function verified(answer, integrity) {
  const { promise, reject, resolve } = newCapability();
  upon(answer, (response) => {
    const s = internal.responseState(response);
    const verify = (bytes) => {
      if (bytes === null || !internal.matchesIntegrity(integrity, bytes)) {
        reject(new TypeError("fetch: the body is not what integrity says"));
        return;
      }
      s.source = bytes;
      s.stream = null;
      resolve(response);
    };
    if (s.stream === null) verify(s.source);
    else internal.readAll(s.stream, Infinity, verify, reject);
  }, reject);
  return promise;
}

// checked returns the promise of a response whose body is what the request's integrity says.
function checked(answer, s) {
  if (s.extras.integrity === "") return answer;
  const integrity = internal.integrityOf(s.extras.integrity);
  return integrity === null ? answer : verified(answer, integrity);
}
internal.checked = checked;

const operations = {
  fetch(input, init = undefined) {
    try {
      requireArguments(arguments.length, 1, "fetch");
      const request = new Request(input, init);
      const s = requestState(request);
      return checked(answerHere(s) ?? begin(request), s);
    } catch (error) {
      return PromiseReject(error);
    }
  },
};
defineOperation("fetch", operations.fetch);
