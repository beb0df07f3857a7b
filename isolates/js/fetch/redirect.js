// fetch/redirect.js is "HTTP-redirect fetch" of the Fetch standard. It changes a request after its response was a
// redirect.

"use strict";

const { List, TypeError } = primordials;
const { serializeOrigin, serializeURL } = internal;

const MAX_REDIRECTS = 20;

// ofBody has the headers that describe a body. A redirect that drops the body drops them too.
const ofBody = { __proto__: null, "content-encoding": true, "content-language": true, "content-location": true, "content-type": true, "content-length": true };

// ofOrigin has the headers that are for one origin only. The code does not send them to another origin. A Referer
// that the handler has set is one of them, because the referrer policy cannot shorten it.
const ofOrigin = { __proto__: null, "authorization": true, "cookie": true, "proxy-authorization": true, "referer": true };

function without(flat, names) {
  const out = new List();
  for (let i = 0; i < flat.length; i += 2) {
    if (names[flat[i]] === true) continue;
    out[out.length] = flat[i];
    out[out.length] = flat[i + 1];
  }
  return out;
}

// taint sets an Origin header of the handler to "null", unless it is the origin that redirects. A receiver cannot
// tell a request that another origin redirected from a request of the Origin itself.
function taint(flat, from) {
  for (let i = 0; i < flat.length; i += 2) {
    if (flat[i] === "origin" && flat[i + 1] !== from) flat[i + 1] = "null";
  }
}

function isRedirectable(record) {
  return record.scheme === "http" || record.scheme === "https";
}

// redirect changes the fetch f to the next request, or throws. careful is false only in a test that shows the effect
// of the missing check.
internal.redirect = (f, status, location, policy, careful) => {
  const record = internal.parseURL(location, f.record);
  if (record === null) throw new TypeError(`fetch: a redirect to ${internal.inspectBrief(location)}, which is no URL`);
  if (!isRedirectable(record)) throw new TypeError(`fetch: a redirect to ${internal.inspectBrief(location)}, which is neither http nor https`);
  if (f.redirects === MAX_REDIRECTS) throw new TypeError(`fetch: more than ${MAX_REDIRECTS} redirects`);
  if (record.username !== "" || record.password !== "") throw new TypeError("fetch: a redirect to a URL with credentials");
  if (status !== 303 && f.upload !== null && !f.upload.kept) {
    throw new TypeError("fetch: a redirect of a request whose body is a stream, which cannot be sent again");
  }
  f.redirects++;
  if (((status === 301 || status === 302) && f.method === "POST") || (status === 303 && f.method !== "GET" && f.method !== "HEAD")) {
    f.method = "GET";
    f.drop();
    f.headers = without(f.headers, ofBody);
  }
  const from = serializeOrigin(f.record);
  if (serializeOrigin(record) !== from) {
    if (careful) f.headers = without(f.headers, ofOrigin);
    taint(f.headers, from);
  }
  if (policy !== null) f.referrer.redirected(policy);
  record.fragment ??= f.record.fragment;
  f.record = record;
  f.url = serializeURL(record);
};
