// fetch/formdata.js is FormData. It also converts FormData to and from multipart/form-data bodies and urlencoded
// bodies.

"use strict";

const {
  DateNow, List, NumberPrototypeToString, StringPrototypeIncludes, StringPrototypeIndexOf, StringPrototypeSlice,
  StringPrototypeToLowerCase, StringPrototypeTrim, TypeError, Uint8Array, lengthOf, subarray,
} = primordials;
const {
  appendArray, concatBytes, defineInterface, definePairIterator, illegalInvocation, indexOrEnd, isBlob, isFile, isObject, requireArguments,
  toUSVString,
} = internal;
const { decode, encode, random } = host;

let listOf;

class FormData {
  #list = new List(); // flat name, value (string or File)
  constructor(form = undefined) {
    if (form !== undefined) throw new TypeError("new FormData: there are no forms here to read");
  }
  static {
    listOf = (value) => {
      if (!isObject(value) || !(#list in value)) throw illegalInvocation("FormData");
      return value.#list;
    };
    internal.isFormData = (value) => isObject(value) && #list in value;
  }
  append(name, value, filename = undefined) {
    const list = listOf(this);
    requireArguments(arguments.length, 2, "FormData.append");
    const key = toUSVString(name);
    const entry = toEntry(value, filename, arguments.length > 2);
    list[list.length] = key;
    list[list.length] = entry;
  }
  delete(name) {
    const list = listOf(this);
    requireArguments(arguments.length, 1, "FormData.delete");
    remove(list, toUSVString(name), 0);
  }
  get(name) {
    const list = listOf(this);
    requireArguments(arguments.length, 1, "FormData.get");
    const at = find(list, toUSVString(name));
    return at === -1 ? null : list[at + 1];
  }
  getAll(name) {
    const list = listOf(this);
    requireArguments(arguments.length, 1, "FormData.getAll");
    const key = toUSVString(name);
    const out = [];
    for (let i = 0; i < list.length; i += 2) if (list[i] === key) appendArray(out, list[i + 1]);
    return out;
  }
  has(name) {
    const list = listOf(this);
    requireArguments(arguments.length, 1, "FormData.has");
    return find(list, toUSVString(name)) !== -1;
  }
  set(name, value, filename = undefined) {
    const list = listOf(this);
    requireArguments(arguments.length, 2, "FormData.set");
    const key = toUSVString(name);
    const entry = toEntry(value, filename, arguments.length > 2);
    const at = find(list, key);
    if (at === -1) {
      list[list.length] = key;
      list[list.length] = entry;
      return;
    }
    list[at + 1] = entry;
    remove(list, key, at + 2);
  }
}
definePairIterator(FormData, "FormData", (value) => listOf(value));
defineInterface(FormData, "FormData");

// toEntry is "create an entry". It turns a Blob into a File, and a Blob with a given file name into a File with that
// name.
function toEntry(value, filename, named) {
  if (!isBlob(value)) {
    if (named) throw new TypeError("FormData: a file name needs a Blob");
    return toUSVString(value);
  }
  if (isFile(value) && (!named || filename === undefined)) return value;
  const name = named && filename !== undefined ? toUSVString(filename) : "blob";
  const modified = isFile(value) ? internal.fileModified(value) : DateNow();
  return internal.newFile(internal.blobView(value), internal.blobType(value), name, modified);
}

function find(list, name) {
  for (let i = 0; i < list.length; i += 2) if (list[i] === name) return i;
  return -1;
}

function remove(list, name, from) {
  let to = from;
  for (let i = from; i < list.length; i += 2) {
    if (list[i] === name) continue;
    list[to] = list[i];
    list[to + 1] = list[i + 1];
    to += 2;
  }
  list.length = to;
}

// ---- to multipart/form-data ----

function newBoundary() {
  const bytes = new Uint8Array(new primordials.ArrayBuffer(16));
  random(bytes);
  let out = "----PinwheelFormBoundary";
  for (let i = 0; i < 16; i++) out += (bytes[i] < 16 ? "0" : "") + NumberPrototypeToString(bytes[i], 16);
  return out;
}

// crlf makes every line ending CRLF, as HTML's multipart encoding requires for names and string values.
function crlf(text) {
  let out = "";
  for (let i = 0; i < text.length; i++) {
    const c = text[i];
    if (c === "\r") {
      out += "\r\n";
      if (text[i + 1] === "\n" && i + 1 < text.length) i++;
    } else out += c === "\n" ? "\r\n" : c;
  }
  return out;
}

function escapeName(text) {
  let out = "";
  for (let i = 0; i < text.length; i++) {
    const c = text[i];
    out += c === "\n" ? "%0A" : c === "\r" ? "%0D" : c === '"' ? "%22" : c;
  }
  return out;
}

internal.serializeMultipart = (form) => {
  const list = listOf(form);
  const boundary = newBoundary();
  const parts = new List();
  for (let i = 0; i < list.length; i += 2) {
    const head = `--${boundary}\r\nContent-Disposition: form-data; name="${escapeName(crlf(list[i]))}"`;
    const value = list[i + 1];
    if (typeof value === "string") {
      parts[parts.length] = encode(`${head}\r\n\r\n${crlf(value)}\r\n`);
      continue;
    }
    const type = internal.blobType(value) || "application/octet-stream";
    parts[parts.length] = encode(`${head}; filename="${escapeName(internal.fileName(value))}"\r\nContent-Type: ${type}\r\n\r\n`);
    parts[parts.length] = internal.blobView(value);
    parts[parts.length] = encode("\r\n");
  }
  parts[parts.length] = encode(`--${boundary}--\r\n`);
  return { __proto__: null, boundary, bytes: concatBytes(parts) };
};

// ---- from bodies ----

// parseFormBody returns the result of formData() of a Request or Response.
internal.parseFormBody = (state, bytes) => {
  const type = internal.contentTypeOf(state);
  const mime = type === null ? null : internal.extractMimeType(type);
  const form = new FormData();
  if (mime !== null && mime.essence === "application/x-www-form-urlencoded") {
    const flat = internal.parseUrlencoded(decode(bytes, false));
    const list = listOf(form);
    for (let i = 0; i < flat.length; i++) list[i] = flat[i];
    return form;
  }
  const boundary = mime === null || mime.essence !== "multipart/form-data" ? undefined : internal.mimeParam(mime, "boundary");
  if (boundary === undefined) throw new TypeError("formData: the content type is neither multipart/form-data nor urlencoded");
  parseMultipart(bytes, encode(`--${boundary}`), listOf(form));
  return form;
};

function malformed() {
  return new TypeError("formData: the body is not well-formed multipart/form-data");
}

function matches(bytes, at, pattern) {
  const n = lengthOf(pattern);
  if (at + n > lengthOf(bytes)) return false;
  for (let i = 0; i < n; i++) if (bytes[at + i] !== pattern[i]) return false;
  return true;
}

function isCRLF(bytes, at) {
  return bytes[at] === 13 && bytes[at + 1] === 10;
}

// firstDelimiter returns the start of the first line that begins with the delimiter. Text before that line has no
// meaning.
function firstDelimiter(bytes, delimiter) {
  let at = 0;
  while (at < lengthOf(bytes) && !((at === 0 || isCRLF(bytes, at - 2)) && matches(bytes, at, delimiter))) at++;
  return at;
}

function parseMultipart(bytes, delimiter, list) {
  let at = firstDelimiter(bytes, delimiter);
  for (;;) {
    if (!matches(bytes, at, delimiter)) throw malformed();
    at += lengthOf(delimiter);
    if (bytes[at] === 45 && bytes[at + 1] === 45) return;
    while (bytes[at] === 32 || bytes[at] === 9) at++;
    if (!isCRLF(bytes, at)) throw malformed();
    const head = parsePartHead(bytes, at + 2);
    let end = head.at;
    while (end < lengthOf(bytes) && !(isCRLF(bytes, end) && matches(bytes, end + 2, delimiter))) end++;
    if (end >= lengthOf(bytes)) throw malformed();
    const body = subarray(bytes, head.at, end);
    list[list.length] = head.name;
    list[list.length] = head.filename === null ? decode(withoutBOM(body), false)
      : internal.newFile(new Uint8Array(body), internal.cleanType(head.type), head.filename, DateNow());
    at = end + 2;
  }
}

function withoutBOM(bytes) {
  const bom = lengthOf(bytes) >= 3 && bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf;
  return bom ? subarray(bytes, 3) : bytes;
}

// parsePartHead reads a part's headers up to the empty line.
function parsePartHead(bytes, at) {
  const head = { __proto__: null, name: null, filename: null, type: "text/plain", at: 0 };
  while (!isCRLF(bytes, at)) {
    let end = at;
    while (end < lengthOf(bytes) && !isCRLF(bytes, end)) end++;
    if (end >= lengthOf(bytes)) throw malformed();
    partHeader(head, decode(subarray(bytes, at, end), false));
    at = end + 2;
  }
  if (head.name === null) throw malformed();
  head.at = at + 2;
  return head;
}

function partHeader(head, line) {
  const colon = StringPrototypeIndexOf(line, ":");
  if (colon === -1) throw malformed();
  const name = StringPrototypeToLowerCase(StringPrototypeSlice(line, 0, colon));
  const value = StringPrototypeTrim(StringPrototypeSlice(line, colon + 1));
  if (name === "content-type") head.type = value;
  if (name !== "content-disposition") return;
  const semicolon = indexOrEnd(value, ";", 0);
  if (StringPrototypeToLowerCase(StringPrototypeTrim(StringPrototypeSlice(value, 0, semicolon))) !== "form-data") throw malformed();
  for (let at = semicolon; at < value.length;) at = dispositionParam(head, value, at + 1);
  if (head.name === null) throw malformed();
}

// dispositionParam reads the parameter after a semicolon and returns the index of the next semicolon.
function dispositionParam(head, text, at) {
  const equals = indexOrEnd(text, "=", at);
  const semicolon = indexOrEnd(text, ";", at);
  if (semicolon <= equals) return semicolon;
  const key = StringPrototypeToLowerCase(StringPrototypeTrim(StringPrototypeSlice(text, at, equals)));
  let end = semicolon;
  let value;
  if (text[equals + 1] === '"') {
    const quote = StringPrototypeIndexOf(text, '"', equals + 2);
    if (quote === -1) throw malformed();
    value = unescapeName(StringPrototypeSlice(text, equals + 2, quote));
    end = indexOrEnd(text, ";", quote);
  } else value = StringPrototypeTrim(StringPrototypeSlice(text, equals + 1, end));
  if (key === "name") head.name ??= value;
  if (key === "filename") head.filename ??= value;
  return end;
}

function unescapeName(text) {
  if (!StringPrototypeIncludes(text, "%")) return text;
  let out = "";
  for (let i = 0; i < text.length; i++) {
    const code = text[i] === "%" ? StringPrototypeSlice(text, i, i + 3) : "";
    if (code !== "%0A" && code !== "%0D" && code !== "%22") out += text[i];
    else {
      out += code === "%0A" ? "\n" : code === "%0D" ? "\r" : '"';
      i += 2;
    }
  }
  return out;
}

internal.addInspector(internal.isFormData, (value) => listOf(value));
