// 65_fetch.js is fetch(): the request goes to Go, which dials, follows redirects and guards addresses; the head of the
// response and the chunks of its body come back under the request's id. Ids never restart in a context. data: URLs are answered here.

"use strict";

const {
  Map, MapPrototypeDelete, MapPrototypeGet, MapPrototypeSet,
  PromiseReject, PromiseResolve,
  StringPrototypeIndexOf, StringPrototypeSlice, StringPrototypeStartsWith, TypeError, sealedProto,
} = primordials;
const {
  Request, ResponseState, defineOperation, isNullBodyStatus, listFrom, newCapability, noop, onAbort, requestHeaders,
  requestState, requestURL, requireArguments, sendOps, signalState, sourceBytes, upon,
} = internal;
const { send } = host;
const { FETCH, FETCH_ABORT } = sendOps;

class Fetch {
  id;
  url;
  answer; // capability of fetch()'s promise, null once settled
  upload = null; // the request's body, while it is read
  feed = null; // the response's body
  sent = false;
  noBody;
  run = internal.acting();
  unlisten = noop;
  constructor(id, url, noBody) {
    this.id = id;
    this.url = url;
    this.answer = newCapability();
    this.noBody = noBody;
  }
}
sealedProto(Fetch);

const fetches = new Map();
let lastId = 0;

// nextRequestId numbers everything Go is asked for and answers later: fetches and queue sends.
internal.nextRequestId = () => ++lastId;

// throwIfAborted is the first thing a fetch does.
function throwIfAborted(s) {
  if (s.signal === null || !signalState(s.signal).aborted) return;
  const { reason } = signalState(s.signal);
  cancelUpload(s.stream, reason);
  throw reason;
}

function cancelUpload(stream, reason) {
  if (stream !== null) internal.markHandled(internal.cancelStream(stream, reason));
}

// begin fetches over the network.
function begin(request) {
  const s = requestState(request);
  const url = requestURL(s);
  throwIfAborted(s);
  if (!StringPrototypeStartsWith(url, "http:") && !StringPrototypeStartsWith(url, "https:")) {
    throw new TypeError(`fetch: ${internal.inspectBrief(url)} is neither http nor https`);
  }
  if (internal.eventIsOver()) throw new TypeError("fetch: the event is over");
  const f = new Fetch(internal.nextRequestId(), url, s.method === "HEAD");
  const { promise } = f.answer; // taken now: failing at once takes the capability away
  MapPrototypeSet(fetches, f.id, f);
  if (s.signal !== null) f.unlisten = onAbort(s.signal, (reason) => abort(f, reason));
  if (s.stream === null) {
    const body = s.source === null ? null : sourceBytes(s.source, false);
    if (s.source !== null) s.used = true;
    transmit(f, s, url, body);
  } else {
    f.upload = s.stream;
    internal.readAll(s.stream, Infinity, (bytes) => transmit(f, s, url, bytes), (error) => fail(f, error));
  }
  return promise;
}

internal.fetch = begin;

function transmit(f, s, url, body) {
  if (MapPrototypeGet(fetches, f.id) !== f) return;
  f.sent = true;
  f.upload = null;
  internal.speakFor(f.run);
  try {
    send(FETCH, f.id, s.method, url, internal.headersList(requestHeaders(s)).flat, body, s.extras.redirect);
  } catch (error) {
    f.sent = false;
    fail(f, error);
  }
}

function fail(f, error) {
  MapPrototypeDelete(fetches, f.id);
  f.unlisten();
  if (f.answer !== null) {
    const { reject } = f.answer;
    f.answer = null;
    reject(error);
  } else if (f.feed !== null) f.feed.error(error);
}

// abort also takes away what has come of a body and was not read.
function abort(f, reason) {
  if (MapPrototypeGet(fetches, f.id) !== f) {
    if (f.feed !== null) f.feed.error(reason);
    return;
  }
  if (f.sent) sendAbort(f);
  fail(f, reason);
  cancelUpload(f.upload, reason);
}

function sendAbort(f) {
  internal.speakFor(f.run);
  send(FETCH_ABORT, f.id);
}

// fetchResponse: Go has the head of a response.
internal.fetchResponse = (id, status, statusText, url, headers, redirected) => {
  const f = MapPrototypeGet(fetches, id);
  if (f === undefined || f.answer === null) return;
  const s = new ResponseState(status, null, null);
  s.type = "basic";
  s.statusText = statusText;
  s.url = withoutFragment(redirected ? url : f.url);
  s.redirected = redirected;
  s.headers = internal.newHeaders(listFrom(headers), true);
  s.immutable = true;
  if (f.noBody || isNullBodyStatus(status)) f.noBody = true;
  else {
    f.feed = internal.newFeed(() => {
      if (MapPrototypeGet(fetches, id) !== f) return;
      MapPrototypeDelete(fetches, id);
      f.unlisten();
      sendAbort(f);
    });
    s.stream = f.feed.stream;
  }
  const { resolve } = f.answer;
  f.answer = null;
  resolve(internal.newResponse(s));
};

function withoutFragment(url) {
  const hash = StringPrototypeIndexOf(url, "#");
  return hash === -1 ? url : StringPrototypeSlice(url, 0, hash);
}

// fetchChunk: a piece of a response's body, or null at its end.
internal.fetchChunk = (id, bytes) => {
  const f = MapPrototypeGet(fetches, id);
  if (f === undefined) return;
  if (bytes !== null) {
    if (f.feed !== null) f.feed.push(bytes);
    return;
  }
  MapPrototypeDelete(fetches, id);
  if (f.feed !== null) f.feed.close();
  if (f.feed === null || !f.feed.isOpen()) f.unlisten();
};

internal.fetchFailed = (id, message) => {
  const f = MapPrototypeGet(fetches, id);
  if (f !== undefined) fail(f, new TypeError(message));
};

// forgetFetches drops what a past event asked for; Go has cancelled it.
internal.forgetFetches = (run) => internal.forgetIn(fetches, run);

function fetchData(s) {
  throwIfAborted(s);
  const response = internal.dataResponse(withoutFragment(requestURL(s)));
  if (response === null) throw new TypeError("fetch: the data: URL is not well-formed");
  if (s.method === "HEAD") response.source = null;
  return PromiseResolve(internal.newResponse(response));
}

// verified follows the promise of a response, which it reads whole, and rejects when the body is not what integrity says.
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

const operations = {
  fetch(input, init = undefined) {
    try {
      requireArguments(arguments.length, 1, "fetch");
      const request = new Request(input, init);
      const s = requestState(request);
      const answer = StringPrototypeStartsWith(requestURL(s), "data:") ? fetchData(s) : begin(request);
      const integrity = internal.integrityOf(s.extras.integrity);
      return integrity === null ? answer : verified(answer, integrity);
    } catch (error) {
      return PromiseReject(error);
    }
  },
};
defineOperation("fetch", operations.fetch);
