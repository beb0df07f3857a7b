// url/parser.js is the basic URL parser of the URL standard, with one method per state. A method returns nothing to
// continue, FAILURE, or STOP when a setter's override ends early.

"use strict";

const { List, StringPrototypeIndexOf, StringPrototypeSlice, StringPrototypeToLowerCase, sealedProto } = primordials;
const {
  C0, FRAGMENT, PATH, QUERY, SPECIAL_QUERY, URLRecord, USERINFO, clean, copyPath, isAlpha, isDigit, isDoubleDot,
  isDriveLetter, isNormalizedDriveLetter, isOpaque, isSingleDot, isSpecial, parseHost, percentEncode, shorten,
  specialPorts, startsWithDriveLetter,
} = internal.urlParts;

const FAILURE = 1;
const STOP = 2;

class Parser {
  input;
  base;
  url;
  override;
  at = 0;
  state;
  buffer = "";
  atSign = false;
  brackets = false;
  password = false;
  constructor(input, base, url, override) {
    this.input = input;
    this.base = base;
    this.url = url;
    this.override = override;
    this.state = override ?? "schemeStart";
  }
  run() {
    for (;; this.at++) {
      const c = this.at < this.input.length ? this.input[this.at] : "";
      const result = this[this.state](c);
      if (result !== undefined) return result;
      if (this.at >= this.input.length) return undefined;
    }
  }
  next(offset) {
    return this.at + offset < this.input.length ? this.input[this.at + offset] : "";
  }
  schemeStart(c) {
    if (isAlpha(c)) {
      this.buffer += StringPrototypeToLowerCase(c);
      this.state = "scheme";
    } else if (this.override === null) {
      this.state = "noScheme";
      this.at--;
    } else return FAILURE;
  }
  scheme(c) {
    if (c !== "" && (isAlpha(c) || isDigit(c) || c === "+" || c === "-" || c === ".")) {
      this.buffer += StringPrototypeToLowerCase(c);
      return undefined;
    }
    if (c === ":") return this.schemeEnd();
    if (this.override !== null) return FAILURE;
    this.buffer = "";
    this.state = "noScheme";
    this.at = -1;
  }
  schemeEnd() {
    const { base, buffer, url } = this;
    if (this.override !== null) {
      if (isSpecial(url) !== (specialPorts[buffer] !== undefined)) return STOP;
      if (buffer === "file" && (url.username !== "" || url.password !== "" || url.port !== null)) return STOP;
      if (url.scheme === "file" && url.host === "") return STOP;
      url.scheme = buffer;
      if (url.port === specialPorts[buffer]) url.port = null;
      return STOP;
    }
    url.scheme = buffer;
    this.buffer = "";
    if (buffer === "file") this.state = "file";
    else if (isSpecial(url)) {
      this.state = base !== null && base.scheme === url.scheme ? "specialRelativeOrAuthority" : "specialAuthoritySlashes";
    } else if (this.next(1) === "/") {
      this.state = "pathOrAuthority";
      this.at++;
    } else {
      url.path = "";
      this.state = "opaquePath";
    }
  }
  noScheme(c) {
    const { base, url } = this;
    if (base === null || (isOpaque(base) && c !== "#")) return FAILURE;
    if (isOpaque(base)) {
      url.scheme = base.scheme;
      url.path = base.path;
      url.query = base.query;
      url.fragment = "";
      this.state = "fragment";
    } else {
      this.state = base.scheme === "file" ? "file" : "relative";
      this.at--;
    }
  }
  specialRelativeOrAuthority(c) {
    if (c === "/" && this.next(1) === "/") {
      this.state = "specialAuthorityIgnoreSlashes";
      this.at++;
    } else {
      this.state = "relative";
      this.at--;
    }
  }
  pathOrAuthority(c) {
    if (c === "/") this.state = "authority";
    else {
      this.state = "path";
      this.at--;
    }
  }
  relative(c) {
    const { base, url } = this;
    url.scheme = base.scheme;
    if (c === "/" || (isSpecial(url) && c === "\\")) {
      this.state = "relativeSlash";
      return;
    }
    url.username = base.username;
    url.password = base.password;
    url.host = base.host;
    url.port = base.port;
    url.path = copyPath(base.path);
    url.query = base.query;
    this.afterBase(c, () => shorten(url));
  }
  // afterBase continues after a copied base. A query or fragment replaces that of the base. Any other character
  // replaces the end of the base's path.
  afterBase(c, shortenPath) {
    const { url } = this;
    if (c === "?") {
      url.query = "";
      this.state = "query";
    } else if (c === "#") {
      url.fragment = "";
      this.state = "fragment";
    } else if (c !== "") {
      url.query = null;
      shortenPath();
      this.state = "path";
      this.at--;
    }
  }
  relativeSlash(c) {
    const { base, url } = this;
    if (isSpecial(url) && (c === "/" || c === "\\")) this.state = "specialAuthorityIgnoreSlashes";
    else if (c === "/") this.state = "authority";
    else {
      url.username = base.username;
      url.password = base.password;
      url.host = base.host;
      url.port = base.port;
      this.state = "path";
      this.at--;
    }
  }
  specialAuthoritySlashes(c) {
    this.state = "specialAuthorityIgnoreSlashes";
    if (c === "/" && this.next(1) === "/") this.at++;
    else this.at--;
  }
  specialAuthorityIgnoreSlashes(c) {
    if (c === "/" || c === "\\") return;
    this.state = "authority";
    this.at--;
  }
  isAuthorityEnd(c) {
    return c === "" || c === "/" || c === "?" || c === "#" || (isSpecial(this.url) && c === "\\");
  }
  authority(c) {
    if (c === "@") {
      if (this.atSign) this.buffer = `%40${this.buffer}`;
      this.atSign = true;
      this.credentials();
      this.buffer = "";
    } else if (this.isAuthorityEnd(c)) {
      if (this.atSign && this.buffer === "") return FAILURE;
      this.at -= this.buffer.length + 1;
      this.buffer = "";
      this.state = "host";
    } else this.buffer += c;
  }
  credentials() {
    const { buffer, url } = this;
    const colon = this.password ? 0 : StringPrototypeIndexOf(buffer, ":");
    if (this.password) url.password += percentEncode(buffer, USERINFO);
    else if (colon === -1) url.username += percentEncode(buffer, USERINFO);
    else {
      url.username += percentEncode(StringPrototypeSlice(buffer, 0, colon), USERINFO);
      url.password += percentEncode(StringPrototypeSlice(buffer, colon + 1), USERINFO);
      this.password = true;
    }
  }
  hostname(c) {
    return this.host(c);
  }
  host(c) {
    const { override, url } = this;
    if (override !== null && url.scheme === "file") {
      this.at--;
      this.state = "fileHost";
    } else if (c === ":" && !this.brackets) {
      if (this.buffer === "") return FAILURE;
      if (override === "hostname") return FAILURE;
      return this.takeHost("port");
    } else if (this.isAuthorityEnd(c)) {
      this.at--;
      if (isSpecial(url) && this.buffer === "") return FAILURE;
      if (override !== null && this.buffer === "" && (url.username !== "" || url.password !== "" || url.port !== null)) {
        return FAILURE;
      }
      const result = this.takeHost("pathStart");
      return result === undefined && override !== null ? STOP : result;
    } else {
      if (c === "[") this.brackets = true;
      else if (c === "]") this.brackets = false;
      this.buffer += c;
    }
  }
  takeHost(state) {
    const parsed = parseHost(this.buffer, !isSpecial(this.url));
    if (parsed === null) return FAILURE;
    this.url.host = parsed;
    this.buffer = "";
    this.state = state;
  }
  port(c) {
    const { url } = this;
    if (isDigit(c)) {
      this.buffer += c;
      return undefined;
    }
    if (!this.isAuthorityEnd(c) && this.override === null) return FAILURE;
    if (this.buffer !== "") {
      const port = +this.buffer;
      if (port > 65535) return FAILURE;
      url.port = port === specialPorts[url.scheme] ? null : port;
      this.buffer = "";
      if (this.override !== null) return STOP;
    }
    if (this.override !== null) return FAILURE;
    this.state = "pathStart";
    this.at--;
  }
  file(c) {
    const { base, url } = this;
    url.scheme = "file";
    url.host = "";
    if (c === "/" || c === "\\") {
      this.state = "fileSlash";
    } else if (base !== null && base.scheme === "file") {
      url.host = base.host;
      url.path = copyPath(base.path);
      url.query = base.query;
      this.afterBase(c, () => {
        if (startsWithDriveLetter(this.input, this.at)) url.path = new List();
        else shorten(url);
      });
    } else {
      this.state = "path";
      this.at--;
    }
  }
  fileSlash(c) {
    const { base, url } = this;
    if (c === "/" || c === "\\") {
      this.state = "fileHost";
      return;
    }
    if (base !== null && base.scheme === "file") {
      url.host = base.host;
      if (!startsWithDriveLetter(this.input, this.at) && base.path.length > 0 && isNormalizedDriveLetter(base.path[0])) {
        url.path[url.path.length] = base.path[0];
      }
    }
    this.state = "path";
    this.at--;
  }
  fileHost(c) {
    const { override, url } = this;
    if (!(c === "" || c === "/" || c === "\\" || c === "?" || c === "#")) {
      this.buffer += c;
      return undefined;
    }
    this.at--;
    if (override === null && isDriveLetter(this.buffer)) this.state = "path";
    else if (this.buffer === "") {
      url.host = "";
      if (override !== null) return STOP;
      this.state = "pathStart";
    } else {
      if (this.takeHost("pathStart") === FAILURE) return FAILURE;
      if (url.host === "localhost") url.host = "";
      if (override !== null) return STOP;
    }
  }
  pathStart(c) {
    const { url } = this;
    if (isSpecial(url)) {
      this.state = "path";
      if (c !== "/" && c !== "\\") this.at--;
    } else if (this.override === null && c === "?") {
      url.query = "";
      this.state = "query";
    } else if (this.override === null && c === "#") {
      url.fragment = "";
      this.state = "fragment";
    } else if (c !== "") {
      this.state = "path";
      if (c !== "/") this.at--;
    } else if (this.override !== null && url.host === null) url.path[url.path.length] = "";
  }
  path(c) {
    const { url } = this;
    const slash = c === "/" || (isSpecial(url) && c === "\\");
    if (c !== "" && !slash && (this.override !== null || (c !== "?" && c !== "#"))) {
      this.buffer += c;
      return;
    }
    this.endSegment(slash);
    if (c === "?") {
      url.query = "";
      this.state = "query";
    } else if (c === "#") {
      url.fragment = "";
      this.state = "fragment";
    }
  }
  endSegment(slash) {
    const { url } = this;
    const { path } = url;
    let segment = percentEncode(this.buffer, PATH);
    this.buffer = "";
    if (isDoubleDot(segment)) {
      shorten(url);
      if (!slash) path[path.length] = "";
    } else if (isSingleDot(segment)) {
      if (!slash) path[path.length] = "";
    } else {
      if (url.scheme === "file" && path.length === 0 && isDriveLetter(segment)) segment = `${segment[0]}:`;
      path[path.length] = segment;
    }
  }
  opaquePath(c) {
    const { url } = this;
    if (c === "?" || c === "#") {
      url.path += percentEncode(this.buffer, C0);
      this.buffer = "";
      if (c === "?") url.query = "";
      else url.fragment = "";
      this.state = c === "?" ? "query" : "fragment";
    } else if (c === "") {
      url.path += percentEncode(this.buffer, C0);
    } else if (c === " ") {
      const next = this.next(1);
      this.buffer += next === "?" || next === "#" ? "%20" : " ";
    } else this.buffer += c;
  }
  query(c) {
    const { url } = this;
    if (c !== "" && (c !== "#" || this.override !== null)) {
      this.buffer += c;
      return;
    }
    url.query += percentEncode(this.buffer, isSpecial(url) ? SPECIAL_QUERY : QUERY);
    this.buffer = "";
    if (c === "#") {
      url.fragment = "";
      this.state = "fragment";
    }
  }
  fragment() {
    this.url.fragment += percentEncode(StringPrototypeSlice(this.input, this.at), FRAGMENT);
    this.at = this.input.length;
  }
}
sealedProto(Parser);

// parseURL returns a record or null.
internal.parseURL = (text, base) => {
  const url = new URLRecord();
  return new Parser(clean(text, true), base, url, null).run() === FAILURE ? null : url;
};

// parseInto runs the parser from a state on an existing record, for setters. It returns false on failure.
internal.parseInto = (url, text, state) => new Parser(clean(text, false), null, url, state).run() !== FAILURE;
