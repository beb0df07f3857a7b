// url/pattern_string.js is the constructor string parser of the URL Pattern standard. It finds which parts of a
// string are the patterns of which components.

"use strict";

const { StringPrototypeSlice, sealedProto } = primordials;
const { tokenize } = internal.urlPatternParts;

const RANK = {
  __proto__: null, init: 0, protocol: 1, authority: 2, username: 3, password: 4, hostname: 5, port: 6, pathname: 7, search: 8,
  hash: 9, done: 10,
};

class StringParser {
  input;
  tokens;
  result;
  start = 0; // the index of the first token of the component
  index = 0;
  increment = 1;
  depth = 0; // the nesting depth of braces
  brackets = 0; // the nesting depth of the brackets of an IPv6 address
  special = false;
  state = "init";
  constructor(input, result) {
    this.input = input;
    this.tokens = tokenize(input, true);
    this.result = result;
  }
  run() {
    while (this.index < this.tokens.length && this.state !== "done") {
      this.increment = 1;
      this.step(this.tokens[this.index].type);
      this.index += this.increment;
    }
    const { result } = this;
    if (result.hostname !== undefined && result.port === undefined) result.port = "";
    return result;
  }
  step(type) {
    if (type === "end") return this.end();
    if (type === "open") {
      this.depth++;
      return undefined;
    }
    if (this.depth > 0) {
      if (type !== "close") return undefined;
      this.depth--;
    }
    return this[this.state]();
  }
  end() {
    if (this.state === "init") {
      this.rewind();
      if (this.is("#")) this.change("hash", 1);
      else if (this.isSearchPrefix()) this.change("search", 1);
      else this.change("pathname", 0);
    } else if (this.state === "authority") {
      this.rewind("hostname");
    } else {
      this.change("done", 0);
    }
  }
  init() {
    if (this.is(":")) this.rewind("protocol");
  }
  protocol() {
    if (!this.is(":")) return;
    this.special = internal.urlPatternProtocolIsSpecial(this.component());
    if (this.is("/", 1) && this.is("/", 2)) this.change("authority", 3);
    else this.change(this.special ? "authority" : "pathname", 1);
  }
  authority() {
    if (this.is("@")) this.rewind("username");
    else if (this.is("/") || this.isSearchPrefix() || this.is("#")) this.rewind("hostname");
  }
  username() {
    if (this.is(":")) this.change("password", 1);
    else if (this.is("@")) this.change("hostname", 1);
  }
  password() {
    if (this.is("@")) this.change("hostname", 1);
  }
  hostname() {
    if (this.is("[")) this.brackets++;
    else if (this.is("]")) this.brackets--;
    else if (this.is(":") && this.brackets === 0) this.change("port", 1);
    else this.port();
  }
  port() {
    if (this.is("/")) this.change("pathname", 0);
    else this.pathname();
  }
  pathname() {
    if (this.isSearchPrefix()) this.change("search", 1);
    else this.search();
  }
  search() {
    if (this.is("#")) this.change("hash", 1);
  }
  hash() {}
  // change ends a component and starts the next one, skip tokens later. The components between them are empty.
  change(state, skip) {
    const { result } = this;
    const from = RANK[this.state];
    const to = RANK[state];
    if (this.state !== "init" && this.state !== "authority") result[this.state] = this.component();
    if (this.state !== "init" && state !== "done") {
      if (from < RANK.hostname && to > RANK.hostname) result.hostname ??= "";
      if (from < RANK.pathname && to > RANK.pathname) result.pathname ??= this.special ? "/" : "";
      if (from < RANK.search && to > RANK.search) result.search ??= "";
    }
    this.state = state;
    this.index += skip;
    this.start = this.index;
    this.increment = 0;
  }
  rewind(state = this.state) {
    this.index = this.start;
    this.increment = 0;
    this.state = state;
  }
  at(index) {
    return this.tokens[index < this.tokens.length ? index : this.tokens.length - 1];
  }
  // is reports whether a token is that character and is not pattern syntax.
  is(character, offset = 0) {
    const { type, value } = this.at(this.index + offset);
    return value === character && (type === "char" || type === "escaped-char" || type === "invalid-char");
  }
  // isSearchPrefix reports whether the token starts the search component. A question mark does, unless it is the
  // modifier of a group.
  isSearchPrefix() {
    if (this.is("?")) return true;
    if (this.tokens[this.index].value !== "?") return false;
    if (this.index === 0) return true;
    const { type } = this.at(this.index - 1);
    return type !== "name" && type !== "regexp" && type !== "close" && type !== "asterisk";
  }
  component() {
    return StringPrototypeSlice(this.input, this.at(this.start).index, this.tokens[this.index].index);
  }
}
sealedProto(StringParser);

internal.parseURLPattern = (input, result) => new StringParser(input, result).run();
