// node/url.js is node:url: URL of the web platform, and the older parse, format and resolve.

"use strict";

const {
  DecodeURIComponent, EncodeURIComponent, NumberParseInt, ObjectKeys, ReflectGet, StringPrototypeCharCodeAt, StringPrototypeIncludes,
  StringPrototypeIndexOf, StringPrototypeLastIndexOf, StringPrototypeSlice, StringPrototypeStartsWith, StringPrototypeToLowerCase,
  StringPrototypeTrim, TypeError, globalThis,
} = primordials;
const { builtin, checks, coded, put, wrongType } = internal.node;

const web = (name) => ReflectGet(globalThis, name);
const slashed = { __proto__: null, "http:": true, "https:": true, "ftp:": true, "gopher:": true, "file:": true, "ws:": true, "wss:": true };
const hostless = { __proto__: null, "javascript:": true };

const fields = ["protocol", "slashes", "auth", "host", "port", "hostname", "hash", "search", "query", "pathname", "path", "href"];

function Url() { for (let i = 0; i < fields.length; i++) this[fields[i]] = null; }

// schemeOf returns the scheme with its colon, or "".
function schemeOf(text) {
  for (let i = 0; i < text.length; i++) {
    const c = StringPrototypeCharCodeAt(text, i);
    if (c === 58) return i > 0 ? StringPrototypeSlice(text, 0, i + 1) : "";
    const word = (c >= 48 && c <= 57) || (c >= 65 && c <= 90) || (c >= 97 && c <= 122) || c === 43 || c === 45 || c === 46;
    if (!word) return "";
  }
  return "";
}

// endOfHost is the index of the first character that cannot be of a host.
function endOfHost(text, chars) {
  for (let i = 0; i < text.length; i++) if (StringPrototypeIncludes(chars, text[i])) return i;
  return text.length;
}

const escaped = { __proto__: null, "\t": "%09", "\n": "%0A", "\r": "%0D", " ": "%20", '"': "%22", "'": "%27", "<": "%3C", ">": "%3E", "\\": "%5C", "^": "%5E", "`": "%60", "{": "%7B", "|": "%7C", "}": "%7D" };

function escapeRest(text) {
  let out = "";
  for (let i = 0; i < text.length; i++) out += escaped[text[i]] ?? text[i];
  return out;
}

function backslashes(text) {
  let out = "";
  let query = false;
  for (let i = 0; i < text.length; i++) {
    if (text[i] === "?" || text[i] === "#") query = true;
    out += text[i] === "\\" && !query ? "/" : text[i];
  }
  return out;
}

function readHost(url, rest) {
  const end = endOfHost(rest, "/?#");
  let host = StringPrototypeSlice(rest, 0, end);
  const at = StringPrototypeLastIndexOf(host, "@");
  if (at !== -1) {
    try {
      url.auth = DecodeURIComponent(StringPrototypeSlice(host, 0, at));
    } catch {
      throw coded(primordials.URIError, "ERR_INVALID_URL", "URI malformed");
    }
    host = StringPrototypeSlice(host, at + 1);
  }
  const stop = endOfHost(host, " \t\n\r\"<>'`{}|\\^%");
  let after = StringPrototypeSlice(host, stop) + StringPrototypeSlice(rest, end);
  host = StringPrototypeSlice(host, 0, stop);
  const colon = StringPrototypeLastIndexOf(host, ":");
  const isPort = colon !== -1 && colon > StringPrototypeLastIndexOf(host, "]");
  if (isPort) {
    const port = StringPrototypeSlice(host, colon + 1);
    let digits = true;
    for (let i = 0; i < port.length; i++) if (port[i] < "0" || port[i] > "9") digits = false;
    if (digits) {
      if (port !== "") url.port = port;
      host = StringPrototypeSlice(host, 0, colon);
    } else {
      const first = StringPrototypeIndexOf(host, ":");
      after = StringPrototypeSlice(host, first) + after;
      host = StringPrototypeSlice(host, 0, first);
    }
  }
  if (host.length > 255) host = "";
  host = StringPrototypeToLowerCase(host);
  const six = StringPrototypeStartsWith(host, "[");
  if (!six && host !== "") {
    const ascii = builtin("punycode").toASCII(host);
    if (endOfHost(ascii, "\u0000\t\n\r #%/:<>?@[\\]^|") !== ascii.length) throw coded(TypeError, "ERR_INVALID_URL", "Invalid URL");
    host = ascii;
  }
  url.host = host + (url.port === null ? "" : `:${url.port}`);
  url.hostname = six ? StringPrototypeSlice(host, 1, host.length - 1) : host;
  return after !== "" && !StringPrototypeIncludes("/?#", after[0]) ? `/${after}` : after;
}

function parse(text, parseQuery, slashesDenoteHost) {
  if (text instanceof Url) return text;
  checks.string(text, "url");
  const url = new Url();
  let rest = backslashes(StringPrototypeTrim(text));
  const scheme = schemeOf(rest);
  if (scheme !== "") {
    url.protocol = StringPrototypeToLowerCase(scheme);
    rest = StringPrototypeSlice(rest, scheme.length);
  }
  const slashes = StringPrototypeStartsWith(rest, "//") && (slashesDenoteHost || scheme !== "" || StringPrototypeIncludes(rest, "@"));
  if (slashes && !hostless[url.protocol]) {
    url.slashes = true;
    rest = readHost(url, StringPrototypeSlice(rest, 2));
  } else if (scheme !== "" && slashed[url.protocol] === undefined && !hostless[url.protocol]) rest = readHost(url, rest);
  if (!hostless[url.protocol]) rest = escapeRest(rest);
  const hash = StringPrototypeIndexOf(rest, "#");
  if (hash !== -1) {
    url.hash = StringPrototypeSlice(rest, hash);
    rest = StringPrototypeSlice(rest, 0, hash);
  }
  const query = StringPrototypeIndexOf(rest, "?");
  if (query !== -1) {
    url.search = StringPrototypeSlice(rest, query);
    url.query = StringPrototypeSlice(rest, query + 1);
    if (parseQuery) url.query = builtin("querystring").parse(url.query);
    rest = StringPrototypeSlice(rest, 0, query);
  } else if (parseQuery) {
    url.search = null;
    url.query = { __proto__: null };
  }
  if (rest !== "") url.pathname = rest;
  if (slashed[url.protocol] && url.hostname && !url.pathname) url.pathname = "/";
  if (url.pathname !== null || url.search) url.path = (url.pathname ?? "") + (url.search ?? "");
  url.href = formatUrl(url);
  return url;
}

function formatUrl(url) {
  let auth = url.auth || "";
  if (auth) {
    const colon = StringPrototypeIndexOf(auth, ":");
    auth = (colon === -1 ? EncodeURIComponent(auth)
      : `${EncodeURIComponent(StringPrototypeSlice(auth, 0, colon))}:${EncodeURIComponent(StringPrototypeSlice(auth, colon + 1))}`) + "@";
  }
  let protocol = url.protocol || "";
  if (protocol && protocol[protocol.length - 1] !== ":") protocol += ":";
  let pathname = url.pathname || "";
  let hash = url.hash || "";
  let host = "";
  if (url.host) host = auth + url.host;
  else if (url.hostname) {
    const six = StringPrototypeIncludes(url.hostname, ":") && url.hostname[0] !== "[";
    host = auth + (six ? `[${url.hostname}]` : url.hostname) + (url.port ? `:${url.port}` : "");
  }
  const query = url.query !== null && typeof url.query === "object" && ObjectKeys(url.query).length > 0 ? builtin("querystring").stringify(url.query) : "";
  let search = url.search || (query && `?${query}`) || "";
  if (url.slashes || slashed[protocol]) {
    if (url.slashes || host) {
      if (pathname && pathname[0] !== "/") pathname = `/${pathname}`;
      host = `//${host}`;
    } else if (protocol === "file:") host = "//";
  }
  if (search && search[0] !== "?") search = `?${search}`;
  if (hash && hash[0] !== "#") hash = `#${hash}`;
  let path = "";
  for (let i = 0; i < pathname.length; i++) path += pathname[i] === "#" ? "%23" : pathname[i] === "?" ? "%3F" : pathname[i];
  let tail = "";
  for (let i = 0; i < search.length; i++) tail += search[i] === "#" ? "%23" : search[i];
  return protocol + host + path + tail + hash;
}

function format(url, options) {
  if (typeof url === "string") return formatUrl(parse(url));
  if (url === null || typeof url !== "object") throw wrongType("urlObject", "one of type object or string", url);
  if (!internal.isURL(url)) return formatUrl(url);
  if (options !== undefined && options !== null) checks.object(options, "options");
  const { auth = true, fragment = true, search = true, unicode = false } = options ?? {};
  const host = unicode ? builtin("punycode").toUnicode(url.hostname) + (url.port === "" ? "" : `:${url.port}`) : url.host;
  const user = auth && (url.username || url.password) ? `${url.username}${url.password ? `:${url.password}` : ""}@` : "";
  const slashes = StringPrototypeStartsWith(url.href, `${url.protocol}//`) ? "//" : "";
  return url.protocol + slashes + user + host + url.pathname + (search ? url.search : "") + (fragment ? url.hash : "");
}

function resolve(from, to) {
  const URL = web("URL");
  const made = new URL(to, new URL(from, "resolve://"));
  return made.protocol === "resolve:" ? made.pathname + made.search + made.hash : made.href;
}

function fileURLToPath(path) {
  if (typeof path === "string") path = new (web("URL"))(path);
  else if (!internal.isURL(path)) throw wrongType("path", "of type string or an instance of URL", path);
  if (path.protocol !== "file:") throw coded(TypeError, "ERR_INVALID_URL_SCHEME", "The URL must be of scheme file");
  if (path.hostname !== "") throw coded(TypeError, "ERR_INVALID_FILE_URL_HOST", 'File URL host must be "localhost" or empty on linux');
  const { pathname } = path;
  if (StringPrototypeIncludes(StringPrototypeToLowerCase(pathname), "%2f")) {
    throw coded(TypeError, "ERR_INVALID_FILE_URL_PATH", "File URL path must not include encoded / characters");
  }
  return DecodeURIComponent(pathname);
}

function pathToFileURL(path) {
  checks.string(path, "path");
  const full = builtin("path").resolve(path);
  const end = path[path.length - 1] === "/" && full[full.length - 1] !== "/" ? "/" : "";
  const url = new (web("URL"))("file:///");
  let out = "";
  const text = full + end;
  for (let i = 0; i < text.length; i++) {
    const c = text[i];
    out += c === "%" ? "%25" : c === "\\" ? "%5C" : c === "\n" ? "%0A" : c === "\r" ? "%0D" : c === "\t" ? "%09" : c === "?" ? "%3F" : c === "#" ? "%23" : c;
  }
  url.pathname = out;
  return url;
}

function urlToHttpOptions(url) {
  const { hostname, pathname, port, username, password, search } = url;
  const out = { __proto__: null, protocol: url.protocol, hostname: hostname && hostname[0] === "[" ? StringPrototypeSlice(hostname, 1, hostname.length - 1) : hostname,
    hash: url.hash, search, pathname, path: `${pathname || ""}${search || ""}`, href: url.href };
  if (port !== "") out.port = NumberParseInt(port, 10);
  if (username || password) out.auth = `${DecodeURIComponent(username)}:${DecodeURIComponent(password)}`;
  return out;
}

put(Url.prototype, {
  parse(text, parseQuery, slashesDenoteHost) { return put(this, parse(text, parseQuery, slashesDenoteHost)); },
  format() { return formatUrl(this); },
  resolve(relative) { return resolve(formatUrl(this), relative); },
  resolveObject(relative) { return parse(resolve(formatUrl(this), relative), false, true); },
  parseHost() {},
});

// domain maps a domain as URL does, or returns "" if it is none.
function domain(text, map) {
  try {
    return map(new (web("URL"))(`ws://${text}`).hostname);
  } catch {
    return "";
  }
}

const module = put({}, {
  Url, parse, format, resolve, fileURLToPath, pathToFileURL, urlToHttpOptions,
  resolveObject(from, to) { return from ? parse(from, false, true).resolveObject(to) : to; },
  domainToASCII(text) { return domain(`${text}`, (host) => host); },
  domainToUnicode(text) { return domain(`${text}`, (host) => builtin("punycode").toUnicode(host)); },
});
internal.node.later(module, "URL", () => web("URL"));
internal.node.later(module, "URLSearchParams", () => web("URLSearchParams"));
internal.nodeModules.url = module;
