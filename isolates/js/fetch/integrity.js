// fetch/integrity.js is the part of Subresource Integrity that the Fetch standard uses: it checks whether bytes match
// metadata.

"use strict";

const { List, StringPrototypeCharCodeAt, StringPrototypeIndexOf, StringPrototypeSlice, StringPrototypeStartsWith, lengthOf } = primordials;
const { askOps, fromBase64url, fromForgivingBase64, subtleOps } = internal;
const { isSpace } = internal.asciiSpace;
const { ask } = host;

// prefixes are the prefixes of metadata and digests are the names of the digests, both in order of strength.
const prefixes = ["sha256-", "sha384-", "sha512-"];
const digests = ["SHA-256", "SHA-384", "SHA-512"];

// strongest returns the hashes of the strongest algorithm in the metadata, as {algorithm, values}. It returns null if
// the metadata has none.
function strongest(metadata) {
  let algorithm = -1;
  let values = new List();
  for (let at = 0; at < metadata.length;) {
    let end = at;
    while (end < metadata.length && !isSpace(StringPrototypeCharCodeAt(metadata, end))) end++;
    const item = StringPrototypeSlice(metadata, at, end);
    at = end + 1;
    for (let i = 0; i < prefixes.length; i++) {
      if (i < algorithm || !StringPrototypeStartsWith(item, prefixes[i])) continue;
      if (i > algorithm) values = new List();
      algorithm = i;
      const options = StringPrototypeIndexOf(item, "?");
      values[values.length] = StringPrototypeSlice(item, 7, options === -1 ? item.length : options);
    }
  }
  return algorithm === -1 ? null : { __proto__: null, algorithm, values };
}

function isSame(a, b) {
  if (b === null || lengthOf(a) !== lengthOf(b)) return false;
  for (let i = 0; i < lengthOf(a); i++) if (a[i] !== b[i]) return false;
  return true;
}

// integrityOf returns the hashes that the metadata requires, or null for none. matchesIntegrity reports whether bytes
// match them.
internal.integrityOf = strongest;
internal.matchesIntegrity = ({ algorithm, values }, bytes) => {
  const actual = ask(askOps.SUBTLE, subtleOps.DIGEST, digests[algorithm], bytes);
  for (let i = 0; i < values.length; i++) {
    if (isSame(actual, fromForgivingBase64(values[i]) ?? fromBase64url(values[i]))) return true;
  }
  return false;
};
