// url/pattern.js is URLPattern of the URL Pattern standard: canonicalization, constructor strings, inits and matching.

"use strict";

const {
  ObjectDefineProperty, StringPrototypeCharCodeAt, StringPrototypeLastIndexOf, StringPrototypeSlice,
  StringPrototypeToLowerCase, List, TypeError, sealedProto,
} = primordials;
const {
  addInspector, defineInterface, illegalInvocation, isObject, parseInto, parseURL, serializePath, toDictionary, toUSVString,
} = internal;
const { URLRecord, USERINFO, hexValue, isOpaque, percentEncode, specialPorts } = internal.urlParts;
const { Options, PATTERN_SYNTAX, compile, escapeText } = internal.urlPatternParts;

// ---- canonicalization ----

function dummy() {
  const url = new URLRecord();
  url.scheme = "https";
  url.host = "dummy.invalid";
  return url;
}

function canonicalized(url, value, state, what) {
  if (!parseInto(url, value, state)) throw new TypeError(`URLPattern: ${internal.inspectBrief(value)} is no valid ${what}`);
}

function canonicalProtocol(value) {
  if (value === "" || specialPorts[value] !== undefined) return value;
  const url = parseURL(`${value}://dummy.invalid/`, null);
  if (url === null) throw new TypeError(`URLPattern: ${internal.inspectBrief(value)} is no valid protocol`);
  return url.scheme;
}

const canonicalUserinfo = (value) => percentEncode(value, USERINFO);

function canonicalHostname(value) {
  if (value === "") return value;
  const url = dummy();
  canonicalized(url, value, "hostname", "hostname");
  return url.host ?? "";
}

function canonicalIPv6(value) {
  let out = "";
  for (let i = 0; i < value.length; i++) {
    const c = value[i];
    if (c !== "[" && c !== "]" && c !== ":" && hexValue(StringPrototypeCharCodeAt(c, 0)) < 0) {
      throw new TypeError(`URLPattern: ${internal.inspectBrief(value)} is no part of an IPv6 address`);
    }
    out += StringPrototypeToLowerCase(c);
  }
  return out;
}

function canonicalPort(value, protocol) {
  if (value === "") return value;
  const url = dummy();
  url.scheme = protocol ?? "";
  canonicalized(url, value, "port", "port");
  return url.port === null ? "" : `${url.port}`;
}

// A pathname without a leading slash gets one, with a character after it, so that a dot does not become "/.".
function canonicalPathname(value) {
  if (value === "") return value;
  const slash = value[0] === "/";
  const url = dummy();
  parseInto(url, slash ? value : `/-${value}`, "pathStart");
  const path = serializePath(url);
  return slash ? path : StringPrototypeSlice(path, 2);
}

function canonicalOpaquePathname(value) {
  if (value === "") return value;
  const url = dummy();
  url.path = "";
  canonicalized(url, value, "opaquePath", "pathname");
  return serializePath(url);
}

function canonicalSearch(value) {
  if (value === "") return value;
  const url = dummy();
  url.query = "";
  parseInto(url, value, "query");
  return url.query;
}

function canonicalHash(value) {
  if (value === "") return value;
  const url = dummy();
  url.fragment = "";
  parseInto(url, value, "fragment");
  return url.fragment;
}

// ---- URLPatternInit ----

// MEMBERS is in the order in which Web IDL reads and writes dictionaries.
const MEMBERS = ["baseURL", "hash", "hostname", "password", "pathname", "port", "protocol", "search", "username"];

// Init is a URLPatternInit. A missing member is undefined.
class Init {
  baseURL;
  hash;
  hostname;
  password;
  pathname;
  port;
  protocol;
  search;
  username;
}
sealedProto(Init);

function toInit(value) {
  const init = new Init();
  if (value === undefined || value === null) return init;
  for (let i = 0; i < MEMBERS.length; i++) {
    const member = value[MEMBERS[i]];
    if (member !== undefined) init[MEMBERS[i]] = toUSVString(member);
  }
  return init;
}

// toInput converts a URLPatternInput. A string stays a string, and any other value becomes an init.
function toInput(value) {
  return value === undefined || value === null || isObject(value) ? toInit(value) : toUSVString(value);
}

function define(object, key, value) {
  ObjectDefineProperty(object, key, { __proto__: null, value, writable: true, enumerable: true, configurable: true });
}

function initObject(init) {
  const out = {};
  for (let i = 0; i < MEMBERS.length; i++) {
    if (init[MEMBERS[i]] !== undefined) define(out, MEMBERS[i], init[MEMBERS[i]]);
  }
  return out;
}

function inherit(result, init, base, pattern) {
  const from = (text) => (pattern ? escapeText(text, PATTERN_SYNTAX) : text);
  if (init.protocol !== undefined) return;
  result.protocol = from(base.scheme);
  if (!pattern && init.hostname === undefined && init.port === undefined && init.username === undefined) {
    result.username = base.username;
    if (init.password === undefined) result.password = base.password;
  }
  if (init.hostname !== undefined) return;
  result.hostname = from(base.host ?? "");
  if (init.port !== undefined) return;
  result.port = base.port === null ? "" : `${base.port}`;
  if (init.pathname !== undefined) return;
  result.pathname = from(serializePath(base));
  if (init.search !== undefined) return;
  result.search = from(base.query ?? "");
  if (init.hash !== undefined) return;
  result.hash = from(base.fragment ?? "");
}

function isAbsolute(path, pattern) {
  if (path === "") return false;
  if (path[0] === "/") return true;
  return pattern && path.length > 1 && (path[0] === "\\" || path[0] === "{") && path[1] === "/";
}

function pathOf(init, base, protocol, pattern) {
  let path = init.pathname;
  if (base !== null && !isOpaque(base) && !isAbsolute(path, pattern)) {
    const text = serializePath(base);
    const basePath = pattern ? escapeText(text, PATTERN_SYNTAX) : text;
    const slash = StringPrototypeLastIndexOf(basePath, "/");
    if (slash !== -1) path = StringPrototypeSlice(basePath, 0, slash + 1) + path;
  }
  if (pattern) return path;
  return protocol === "" || specialPorts[protocol] !== undefined ? canonicalPathname(path) : canonicalOpaquePathname(path);
}

function withoutFirst(text, c) {
  return text !== "" && text[0] === c ? StringPrototypeSlice(text, 1) : text;
}

// processInit is "process a URLPatternInit". It fills result, for a pattern or for a URL.
function processInit(init, result, pattern) {
  let base = null;
  if (init.baseURL !== undefined) {
    base = parseURL(init.baseURL, null);
    if (base === null) throw new TypeError(`URLPattern: the base URL ${internal.inspectBrief(init.baseURL)} is invalid`);
    inherit(result, init, base, pattern);
  }
  const made = (member, canonical) => {
    if (init[member] !== undefined) result[member] = pattern ? init[member] : canonical(init[member]);
  };
  if (init.protocol !== undefined) {
    const { protocol: text } = init;
    const bare = text !== "" && text[text.length - 1] === ":" ? StringPrototypeSlice(text, 0, text.length - 1) : text;
    result.protocol = pattern ? bare : canonicalProtocol(bare);
  }
  made("username", canonicalUserinfo);
  made("password", canonicalUserinfo);
  made("hostname", canonicalHostname);
  const protocol = result.protocol ?? "";
  made("port", (port) => canonicalPort(port, protocol));
  if (init.pathname !== undefined) result.pathname = pathOf(init, base, protocol, pattern);
  if (init.search !== undefined) {
    const search = withoutFirst(init.search, "?");
    result.search = pattern ? search : canonicalSearch(search);
  }
  if (init.hash !== undefined) {
    const hash = withoutFirst(init.hash, "#");
    result.hash = pattern ? hash : canonicalHash(hash);
  }
  return result;
}

// ---- the class ----

const COMPONENTS = ["protocol", "username", "password", "hostname", "port", "pathname", "search", "hash"];

function isIPv6Pattern(text) {
  return text.length > 1 && (text[0] === "[" || ((text[0] === "{" || text[0] === "\\") && text[1] === "["));
}

function matchesSpecialScheme(protocol) {
  const schemes = ["http", "https", "ws", "wss", "ftp", "file"];
  for (let i = 0; i < schemes.length; i++) {
    if (protocol.match(schemes[i]) !== null) return true;
  }
  return false;
}

const plain = new Options("", "", false);
const hostnames = new Options(".", "", false);

internal.urlPatternProtocolIsSpecial = (text) => matchesSpecialScheme(compile(text, canonicalProtocol, plain));

function compileAll(init, ignoreCase) {
  for (let i = 0; i < COMPONENTS.length; i++) init[COMPONENTS[i]] ??= "*";
  const port = specialPorts[init.protocol];
  if (port !== undefined && port !== null && init.port === `${port}`) init.port = "";
  const all = new Init();
  const rest = new Options("", "", ignoreCase);
  all.protocol = compile(init.protocol, canonicalProtocol, plain);
  all.username = compile(init.username, canonicalUserinfo, plain);
  all.password = compile(init.password, canonicalUserinfo, plain);
  all.hostname = compile(init.hostname, isIPv6Pattern(init.hostname) ? canonicalIPv6 : canonicalHostname, hostnames);
  all.port = compile(init.port, (text) => canonicalPort(text), plain);
  all.pathname = matchesSpecialScheme(all.protocol) ? compile(init.pathname, canonicalPathname, new Options("/", "/", ignoreCase))
    : compile(init.pathname, canonicalOpaquePathname, rest);
  all.search = compile(init.search, canonicalSearch, rest);
  all.hash = compile(init.hash, canonicalHash, rest);
  return all;
}

function create(input, baseURL, ignoreCase) {
  let init = input;
  if (typeof input === "string") {
    init = internal.parseURLPattern(input, new Init());
    if (baseURL === null && init.protocol === undefined) {
      throw new TypeError(`URLPattern: ${internal.inspectBrief(input)} is relative and there is no base URL`);
    }
    if (baseURL !== null) init.baseURL = baseURL;
  } else if (baseURL !== null) throw new TypeError("URLPattern: a base URL may only be given with a string; an object has a member baseURL");
  return compileAll(processInit(init, new Init(), true), ignoreCase);
}

// urlOf returns an Init with the components to match, or null.
function urlOf(input, baseURL) {
  const url = new Init();
  for (let i = 0; i < COMPONENTS.length; i++) url[COMPONENTS[i]] = "";
  if (typeof input !== "string") {
    if (baseURL !== undefined) throw new TypeError("URLPattern: a base URL may only be given with a string; an object has a member baseURL");
    try {
      return processInit(input, url, false);
    } catch {
      return null;
    }
  }
  const base = baseURL === undefined ? null : parseURL(baseURL, null);
  if (base === null && baseURL !== undefined) return null;
  const record = parseURL(input, base);
  if (record === null) return null;
  url.protocol = record.scheme;
  url.username = record.username;
  url.password = record.password;
  url.hostname = record.host ?? "";
  url.port = record.port === null ? "" : `${record.port}`;
  url.pathname = serializePath(record);
  url.search = record.query ?? "";
  url.hash = record.fragment ?? "";
  return url;
}

function componentResult(component, input, found) {
  const groups = {};
  for (let i = 0; i < component.names.length; i++) define(groups, component.names[i], found[i + 1]);
  return { groups, input };
}

// match returns a List of the matches of each component, or null.
function match(all, url) {
  if (url === null) return null;
  const found = new List();
  for (let i = 0; i < COMPONENTS.length; i++) {
    const groups = all[COMPONENTS[i]].match(url[COMPONENTS[i]]);
    if (groups === null) return null;
    found[i] = groups;
  }
  return found;
}

let componentsOf;

class URLPattern {
  #components;
  constructor(input = undefined, baseURL = undefined, options = undefined) {
    const given = toInput(input);
    let base = null;
    if (arguments.length < 3 && (baseURL === undefined || baseURL === null || isObject(baseURL))) options = baseURL;
    else base = toUSVString(baseURL);
    const ignoreCase = !!toDictionary(options, "new URLPattern: the options")?.ignoreCase;
    this.#components = create(given, base, ignoreCase);
  }
  static {
    componentsOf = (value) => {
      if (!isObject(value) || !(#components in value)) throw illegalInvocation("URLPattern");
      return value.#components;
    };
    internal.isURLPattern = (value) => isObject(value) && #components in value;
  }
  get protocol() { return componentsOf(this).protocol.pattern; }
  get username() { return componentsOf(this).username.pattern; }
  get password() { return componentsOf(this).password.pattern; }
  get hostname() { return componentsOf(this).hostname.pattern; }
  get port() { return componentsOf(this).port.pattern; }
  get pathname() { return componentsOf(this).pathname.pattern; }
  get search() { return componentsOf(this).search.pattern; }
  get hash() { return componentsOf(this).hash.pattern; }
  get hasRegExpGroups() {
    const all = componentsOf(this);
    for (let i = 0; i < COMPONENTS.length; i++) if (all[COMPONENTS[i]].custom) return true;
    return false;
  }
  test(input = undefined, baseURL = undefined) {
    const all = componentsOf(this);
    const given = toInput(input);
    return match(all, urlOf(given, baseURL === undefined ? undefined : toUSVString(baseURL))) !== null;
  }
  exec(input = undefined, baseURL = undefined) {
    const all = componentsOf(this);
    const given = toInput(input);
    const base = baseURL === undefined ? undefined : toUSVString(baseURL);
    const url = urlOf(given, base);
    const found = match(all, url);
    if (found === null) return null;
    const at = (i) => componentResult(all[COMPONENTS[i]], url[COMPONENTS[i]], found[i]);
    const shown = typeof given === "string" ? given : initObject(given);
    return {
      hash: at(7), hostname: at(3), inputs: base === undefined ? [shown] : [shown, base], password: at(2), pathname: at(5),
      port: at(4), protocol: at(0), search: at(6), username: at(1),
    };
  }
}
defineInterface(URLPattern, "URLPattern");

addInspector(internal.isURLPattern, (value) => {
  const all = componentsOf(value);
  const list = new List();
  for (let i = 0; i < COMPONENTS.length; i++) {
    list[2 * i] = COMPONENTS[i];
    list[2 * i + 1] = all[COMPONENTS[i]].pattern;
  }
  return list;
});
