// url/search_params.js is URLSearchParams, and the parser and serialiser of application/x-www-form-urlencoded.

"use strict";

const {
  ArrayPrototypeSort, List, StringPrototypeIndexOf, StringPrototypeSlice, SymbolIterator, TypeError, lengthOf,
} = primordials;
const {
  TOKEN, appendArray, defineInterface, definePairIterator, illegalInvocation, isObject, requireArguments, toRecord,
  toSequence, toUSVString,
} = internal;
const { FORM, percentDecode, percentEncode } = internal.urlParts;
const { decode, encode } = host;

function decodeComponent(text) {
  let plain = true;
  for (let i = 0; i < text.length; i++) {
    if (text[i] === "+" || text[i] === "%") {
      plain = false;
      break;
    }
  }
  if (plain) return text;
  const bytes = encode(text);
  for (let i = 0; i < lengthOf(bytes); i++) if (bytes[i] === 43) bytes[i] = 32;
  return decode(percentDecode(bytes), false);
}

// parseForm returns a flat list name, value of urlencoded text.
function parseForm(text) {
  const list = new List();
  let at = 0;
  while (at <= text.length) {
    let end = StringPrototypeIndexOf(text, "&", at);
    if (end === -1) end = text.length;
    if (end > at) {
      let equals = StringPrototypeIndexOf(text, "=", at);
      if (equals === -1 || equals > end) equals = end;
      list[list.length] = decodeComponent(StringPrototypeSlice(text, at, equals));
      list[list.length] = equals < end ? decodeComponent(StringPrototypeSlice(text, equals + 1, end)) : "";
    }
    at = end + 1;
  }
  return list;
}

function serializeForm(list) {
  let out = "";
  for (let i = 0; i < list.length; i += 2) {
    if (i > 0) out += "&";
    out += `${percentEncode(list[i], FORM)}=${percentEncode(list[i + 1], FORM)}`;
  }
  return out;
}

let listOf;
let refill;

class URLSearchParams {
  #list;
  #url = null;
  constructor(init = "", url = undefined, text = undefined) {
    if (init === TOKEN) {
      this.#list = parseForm(text);
      this.#url = url;
      return;
    }
    this.#list = initialList(init);
  }
  static {
    listOf = (value) => {
      if (!isObject(value) || !(#list in value)) throw illegalInvocation("URLSearchParams");
      return value.#list;
    };
    refill = (value, list) => { value.#list = list; };
    internal.isURLSearchParams = (value) => isObject(value) && #list in value;
  }
  get size() { return listOf(this).length / 2; }
  append(name, value) {
    const list = listOf(this);
    requireArguments(arguments.length, 2, "URLSearchParams.append");
    const key = toUSVString(name);
    const text = toUSVString(value);
    list[list.length] = key;
    list[list.length] = text;
    this.#update();
  }
  delete(name, value = undefined) {
    const list = listOf(this);
    requireArguments(arguments.length, 1, "URLSearchParams.delete");
    const key = toUSVString(name);
    const text = value === undefined ? undefined : toUSVString(value);
    remove(list, key, text, 0);
    this.#update();
  }
  get(name) {
    const list = listOf(this);
    requireArguments(arguments.length, 1, "URLSearchParams.get");
    const at = find(list, toUSVString(name), undefined);
    return at === -1 ? null : list[at + 1];
  }
  getAll(name) {
    const list = listOf(this);
    requireArguments(arguments.length, 1, "URLSearchParams.getAll");
    const key = toUSVString(name);
    const out = [];
    for (let i = 0; i < list.length; i += 2) if (list[i] === key) appendArray(out, list[i + 1]);
    return out;
  }
  has(name, value = undefined) {
    const list = listOf(this);
    requireArguments(arguments.length, 1, "URLSearchParams.has");
    const key = toUSVString(name);
    return find(list, key, value === undefined ? undefined : toUSVString(value)) !== -1;
  }
  set(name, value) {
    const list = listOf(this);
    requireArguments(arguments.length, 2, "URLSearchParams.set");
    const key = toUSVString(name);
    const text = toUSVString(value);
    const at = find(list, key, undefined);
    if (at === -1) {
      list[list.length] = key;
      list[list.length] = text;
    } else {
      list[at + 1] = text;
      remove(list, key, undefined, at + 2);
    }
    this.#update();
  }
  sort() {
    const list = listOf(this);
    const pairs = new List();
    for (let i = 0; i < list.length; i += 2) pairs[i / 2] = { __proto__: null, name: list[i], value: list[i + 1] };
    ArrayPrototypeSort(pairs, (a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
    for (let i = 0; i < pairs.length; i++) {
      list[2 * i] = pairs[i].name;
      list[2 * i + 1] = pairs[i].value;
    }
    this.#update();
  }
  toString() { return serializeForm(listOf(this)); }
  #update() {
    if (this.#url !== null) internal.updateURLQuery(this.#url, serializeForm(this.#list));
  }
}
definePairIterator(URLSearchParams, "URLSearchParams", (value) => listOf(value));
defineInterface(URLSearchParams, "URLSearchParams");

function find(list, name, value) {
  for (let i = 0; i < list.length; i += 2) {
    if (list[i] === name && (value === undefined || list[i + 1] === value)) return i;
  }
  return -1;
}

function remove(list, name, value, from) {
  let to = from;
  for (let i = from; i < list.length; i += 2) {
    if (list[i] === name && (value === undefined || list[i + 1] === value)) continue;
    list[to] = list[i];
    list[to + 1] = list[i + 1];
    to += 2;
  }
  list.length = to;
}

function initialList(init) {
  if (!isObject(init)) {
    const text = toUSVString(init);
    return parseForm(text[0] === "?" ? StringPrototypeSlice(text, 1) : text);
  }
  const method = init[SymbolIterator];
  if (method === undefined || method === null) return toRecord(init, toUSVString, toUSVString, "new URLSearchParams: the init");
  const pairs = toSequence(init, (pair) => toSequence(pair, toUSVString, "a pair"), "new URLSearchParams: the init", method);
  const list = new List();
  for (let i = 0; i < pairs.length; i++) {
    if (pairs[i].length !== 2) throw new TypeError("new URLSearchParams: a pair does not have exactly two items");
    list[list.length] = pairs[i][0];
    list[list.length] = pairs[i][1];
  }
  return list;
}

internal.addInspector(internal.isURLSearchParams, (value) => listOf(value), true);
internal.newSearchParams = (url, query) => new URLSearchParams(TOKEN, url, query);
internal.refillSearchParams = (params, query) => refill(params, parseForm(query));
internal.serializeSearchParams = (value) => serializeForm(listOf(value));
internal.parseUrlencoded = parseForm;
