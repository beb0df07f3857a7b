// fetch/mime.js parses and serialises MIME types as the MIME Sniffing standard requires.

"use strict";

const {
  List, StringPrototypeCharCodeAt, StringPrototypeIndexOf, StringPrototypeSlice, StringPrototypeToLowerCase,
  sealedProto,
} = primordials;

class MimeType {
  essence;
  params = new List(); // flat list of name, value
  constructor(essence) {
    this.essence = essence;
  }
}
sealedProto(MimeType);

function isSpace(c) {
  return c === 32 || c === 9 || c === 10 || c === 13;
}

function trimEnd(text) {
  let end = text.length;
  while (end > 0 && isSpace(StringPrototypeCharCodeAt(text, end - 1))) end--;
  return StringPrototypeSlice(text, 0, end);
}

function trim(text) {
  let start = 0;
  while (start < text.length && isSpace(StringPrototypeCharCodeAt(text, start))) start++;
  return trimEnd(StringPrototypeSlice(text, start));
}

function isQuotable(text) {
  for (let i = 0; i < text.length; i++) {
    const c = StringPrototypeCharCodeAt(text, i);
    if (!(c === 9 || (c >= 32 && c <= 126) || (c >= 128 && c <= 255))) return false;
  }
  return true;
}

// quoted reads an HTTP quoted string whose opening quote is at `at`. It returns [value, position after it].
function quoted(text, at) {
  let out = "";
  at++;
  while (at < text.length) {
    const c = text[at++];
    if (c === '"') break;
    if (c === "\\" && at < text.length) out += text[at++];
    else out += c;
  }
  return { __proto__: null, value: out, at };
}

// find returns the index of a character after a position, or the end of the text.
function find(text, char, from) {
  const at = StringPrototypeIndexOf(text, char, from);
  return at === -1 ? text.length : at;
}
internal.indexOrEnd = find;

// parseMimeType returns {essence, params} or null.
function parseMimeType(input) {
  const text = trim(input);
  const slash = StringPrototypeIndexOf(text, "/");
  if (slash <= 0) return null;
  const type = StringPrototypeSlice(text, 0, slash);
  let at = find(text, ";", slash);
  const subtype = trimEnd(StringPrototypeSlice(text, slash + 1, at));
  if (!internal.isToken(type) || !internal.isToken(subtype)) return null;
  const mime = new MimeType(StringPrototypeToLowerCase(`${type}/${subtype}`));
  while (at < text.length) at = parameter(mime, text, at + 1);
  return mime;
}
internal.parseMimeType = parseMimeType;

// parameter reads one parameter and returns the position of the semicolon after it.
function parameter(mime, text, at) {
  while (at < text.length && isSpace(StringPrototypeCharCodeAt(text, at))) at++;
  const equals = find(text, "=", at);
  const semicolon = find(text, ";", at);
  if (semicolon <= equals) return semicolon;
  const name = StringPrototypeToLowerCase(StringPrototypeSlice(text, at, equals));
  at = equals + 1;
  let value;
  let end;
  if (text[at] === '"') {
    const q = quoted(text, at);
    value = q.value;
    end = find(text, ";", q.at);
  } else {
    end = find(text, ";", at);
    value = trimEnd(StringPrototypeSlice(text, at, end));
    if (value === "") return end;
  }
  if (internal.isToken(name) && isQuotable(value) && mimeParam(mime, name) === undefined) {
    mime.params[mime.params.length] = name;
    mime.params[mime.params.length] = value;
  }
  return end;
}

function mimeParam(mime, name) {
  for (let i = 0; i < mime.params.length; i += 2) {
    if (mime.params[i] === name) return mime.params[i + 1];
  }
  return undefined;
}
internal.mimeParam = mimeParam;

// extractMimeType is the Fetch standard's "extract a MIME type" for all content-type headers together. It returns the
// last valid type, with the charset of an earlier type of the same essence, or null.
internal.extractMimeType = (input) => {
  if (StringPrototypeIndexOf(input, ",") === -1) return notAny(parseMimeType(input));
  let mime = null;
  let charset;
  for (let at = 0; at < input.length;) {
    const end = endOfValue(input, at);
    const next = notAny(parseMimeType(StringPrototypeSlice(input, at, end)));
    at = end + 1;
    if (next === null) continue;
    const own = mimeParam(next, "charset");
    if (mime === null || mime.essence !== next.essence) charset = own;
    else if (own === undefined && charset !== undefined) {
      next.params[next.params.length] = "charset";
      next.params[next.params.length] = charset;
    }
    mime = next;
  }
  return mime;
};

function notAny(mime) {
  return mime === null || mime.essence === "*/*" ? null : mime;
}

// endOfValue returns the end of a value in a comma-separated list: a comma outside of quotes.
function endOfValue(text, at) {
  while (at < text.length && text[at] !== ",") at = text[at] === '"' ? quoted(text, at).at : at + 1;
  return at;
}

internal.serializeMimeType = (mime) => {
  let out = mime.essence;
  for (let i = 0; i < mime.params.length; i += 2) {
    const value = mime.params[i + 1];
    out += `;${mime.params[i]}=`;
    out += internal.isToken(value) ? value : `"${escape(value)}"`;
  }
  return out;
};

function escape(text) {
  let out = "";
  for (let i = 0; i < text.length; i++) out += text[i] === '"' || text[i] === "\\" ? `\\${text[i]}` : text[i];
  return out;
}
