// fetch/referrer.js applies Referrer Policy to the Referer of a request. A handler has no URL. So a request has a
// referrer only if the handler sets it.

"use strict";

const { StringPrototypeToLowerCase, StringPrototypeSlice, sealedProto, split } = primordials;
const { serializeOrigin, serializeURL } = internal;

const MAX_REFERRER = 4096;

const policies = {
  __proto__: null, "no-referrer": true, "no-referrer-when-downgrade": true, "same-origin": true, "origin": true, "strict-origin": true,
  "origin-when-cross-origin": true, "strict-origin-when-cross-origin": true, "unsafe-url": true,
};

// Referrer is a request's referrer and policy. A redirect can change them.
class Referrer {
  url = null; // without credentials and fragment; null = no referrer
  origin = "";
  secure = false;
  policy;
  constructor(text, policy) {
    this.policy = policy;
    const record = text === "" || text === "about:client" ? null : internal.parseURL(text, null);
    if (record === null || (record.scheme !== "http" && record.scheme !== "https")) return;
    record.username = record.password = "";
    record.fragment = null;
    const url = serializeURL(record);
    this.origin = `${serializeOrigin(record)}/`;
    this.url = url.length > MAX_REFERRER ? this.origin : url;
    this.secure = record.scheme === "https";
  }
  // sent returns the value of Referer in a request to target, or null.
  sent(target) {
    if (this.url === null) return null;
    const same = `${serializeOrigin(target)}/` === this.origin;
    const downgrade = this.secure && target.scheme !== "https";
    switch (this.policy) {
      case "no-referrer": return null;
      case "origin": return this.origin;
      case "unsafe-url": return this.url;
      case "same-origin": return same ? this.url : null;
      case "strict-origin": return downgrade ? null : this.origin;
      case "origin-when-cross-origin": return same ? this.url : this.origin;
      case "no-referrer-when-downgrade": return downgrade ? null : this.url;
      default: return same ? this.url : downgrade ? null : this.origin;
    }
  }
  // redirected takes the policy from Referrer-Policy of a response: the last known one.
  redirected(header) {
    const tokens = split(header, ",");
    for (let i = tokens.length - 1; i >= 0; i--) {
      const name = StringPrototypeToLowerCase(trim(tokens[i]));
      if (policies[name] !== true) continue;
      this.policy = name;
      return;
    }
  }
}
sealedProto(Referrer);

function trim(text) {
  let start = 0;
  let end = text.length;
  while (start < end && (text[start] === " " || text[start] === "\t")) start++;
  while (end > start && (text[end - 1] === " " || text[end - 1] === "\t")) end--;
  return StringPrototypeSlice(text, start, end);
}

internal.Referrer = Referrer;
