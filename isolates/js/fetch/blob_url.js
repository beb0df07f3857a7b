// fetch/blob_url.js is URL.createObjectURL and fetch of blob: URLs. Only the context that made such a URL knows it.
// If an event made the URL, the URL is revoked when the event is over.

"use strict";

const { Map, MapPrototypeDelete, MapPrototypeGet, MapPrototypeGetSize, MapPrototypeSet, TypeError, lengthOf, sealedProto } = primordials;
const { QuotaExceededError, ResponseState, listFrom } = internal;

const MAX_URLS = 1000; // the maximum at one time in a context

class Entry {
  blob;
  run;
  constructor(blob, run) {
    this.blob = blob;
    this.run = run;
  }
}
sealedProto(Entry);

const entries = new Map(); // from URL to entry

internal.createBlobURL = (blob) => {
  if (!internal.isBlob(blob)) throw new TypeError("URL.createObjectURL: the argument is not a Blob");
  if (internal.eventIsOver()) throw new TypeError("URL.createObjectURL: the event is over");
  if (MapPrototypeGetSize(entries) >= MAX_URLS) {
    throw new QuotaExceededError(`URL.createObjectURL: there are ${MAX_URLS} object URLs already, which is the most`);
  }
  const url = `blob:null/${internal.randomUUID()}`;
  MapPrototypeSet(entries, url, new Entry(blob, internal.acting()));
  return url;
};

internal.revokeBlobURL = (text) => {
  const record = internal.parseURL(text, null);
  if (record !== null && record.scheme === "blob") MapPrototypeDelete(entries, internal.serializeURL(record));
};

// blobOf returns the Blob of a URL, or null. The URL is serialised and has no fragment.
internal.blobOf = (url) => {
  const entry = MapPrototypeGet(entries, url);
  return entry === undefined || (entry.run !== null && entry.run.over) ? null : entry.blob;
};

internal.onForget((run) => {
  if (MapPrototypeGetSize(entries) > 0) {
    primordials.MapPrototypeForEach(entries, (entry, url) => { if (entry.run === run) MapPrototypeDelete(entries, url); });
  }
});

// blobResponse returns the state of a Response with a Blob.
internal.blobResponse = (blob, url) => {
  const s = new ResponseState(200, null, blob);
  s.statusText = "OK";
  s.type = "basic";
  s.url = url;
  s.headers = internal.newHeaders(listFrom(["content-length", `${lengthOf(internal.blobView(blob))}`, "content-type", internal.blobType(blob)]), true);
  s.immutable = true;
  return s;
};
