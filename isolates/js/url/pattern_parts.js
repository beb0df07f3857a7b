// url/pattern_parts.js is the middle part of the URL Pattern standard. It turns tokens into parts, and parts into
// regular expressions and pattern strings.

"use strict";

const {
  List, RegExp, RegExpPrototypeExec, StringFromCodePoint, StringPrototypeCodePointAt, StringPrototypeIncludes, TypeError,
  sealedProto,
} = primordials;
const { isNameCharacter, tokenize } = internal.urlPatternParts;


class Options {
  delimiter;
  prefix;
  ignoreCase;
  constructor(delimiter, prefix, ignoreCase) {
    this.delimiter = delimiter;
    this.prefix = prefix;
    this.ignoreCase = ignoreCase;
  }
}
sealedProto(Options);

// Part is fixed text or a group. Its modifier is "", "?", "*" or "+".
class Part {
  type; // "fixed", "regexp", "segment" or "full"
  value;
  modifier;
  name;
  prefix;
  suffix;
  constructor(type, value, modifier, name = "", prefix = "", suffix = "") {
    this.type = type;
    this.value = value;
    this.modifier = modifier;
    this.name = name;
    this.prefix = prefix;
    this.suffix = suffix;
  }
}
sealedProto(Part);

const FULL_WILDCARD = ".*";

function segmentWildcard(options) {
  return `[^${escapeText(options.delimiter, REGEXP_SYNTAX)}]+?`;
}

class PatternParser {
  tokens;
  encode;
  options;
  segment;
  parts = new List();
  pending = "";
  index = 0;
  number = 0;
  constructor(input, options, encode) {
    this.tokens = tokenize(input, false);
    this.encode = encode;
    this.options = options;
    this.segment = segmentWildcard(options);
  }
  run() {
    while (this.index < this.tokens.length) this.step();
    return this.parts;
  }
  step() {
    const char = this.take("char");
    const name = this.take("name");
    const group = this.takeGroup(name);
    if (name !== null || group !== null) {
      let prefix = char === null ? "" : char.value;
      if (prefix !== "" && prefix !== this.options.prefix) {
        this.pending += prefix;
        prefix = "";
      }
      this.flush();
      this.add(prefix, name, group, "", this.takeModifier());
      return;
    }
    const fixed = char ?? this.take("escaped-char");
    if (fixed !== null) {
      this.pending += fixed.value;
    } else if (this.take("open") !== null) {
      this.braces();
    } else {
      this.flush();
      this.require("end");
    }
  }
  braces() {
    const prefix = this.text();
    const name = this.take("name");
    const group = this.takeGroup(name);
    const suffix = this.text();
    this.require("close");
    this.add(prefix, name, group, suffix, this.takeModifier());
  }
  take(type) {
    const token = this.tokens[this.index];
    if (token.type !== type) return null;
    this.index++;
    return token;
  }
  takeGroup(name) {
    const token = this.take("regexp");
    return name === null && token === null ? this.take("asterisk") : token;
  }
  takeModifier() {
    const token = this.take("other-modifier") ?? this.take("asterisk");
    return token === null ? "" : token.value;
  }
  require(type) {
    if (this.take(type) !== null) return;
    const { value, index } = this.tokens[this.index];
    throw new TypeError(`URLPattern: ${internal.inspectBrief(value)} at index ${index} where ${type === "end" ? "text or a group" : "}"} should be`);
  }
  text() {
    let out = "";
    for (;;) {
      const token = this.take("char") ?? this.take("escaped-char");
      if (token === null) return out;
      out += token.value;
    }
  }
  flush() {
    if (this.pending === "") return;
    const text = this.encode(this.pending);
    this.pending = "";
    this.parts[this.parts.length] = new Part("fixed", text, "");
  }
  add(prefix, name, group, suffix, modifier) {
    if (name === null && group === null && modifier === "") {
      this.pending += prefix;
      return;
    }
    this.flush();
    if (name === null && group === null) {
      if (prefix !== "") this.parts[this.parts.length] = new Part("fixed", this.encode(prefix), modifier);
      return;
    }
    let value = group === null ? this.segment : group.type === "asterisk" ? FULL_WILDCARD : group.value;
    const type = value === this.segment ? "segment" : value === FULL_WILDCARD ? "full" : "regexp";
    if (type !== "regexp") value = "";
    const called = name === null ? `${this.number++}` : name.value;
    for (let i = 0; i < this.parts.length; i++) {
      if (this.parts[i].name === called) throw new TypeError(`URLPattern: two groups are named ${internal.inspectBrief(called)}`);
    }
    this.parts[this.parts.length] = new Part(type, value, modifier, called, this.encode(prefix), this.encode(suffix));
  }
}
sealedProto(PatternParser);

// ---- from parts to text ----

const REGEXP_SYNTAX = ".+*?^${}()[]|/\\";
const PATTERN_SYNTAX = "+*?:{}()\\";

function escapeText(text, syntax) {
  let out = "";
  for (let i = 0; i < text.length; i++) {
    if (StringPrototypeIncludes(syntax, text[i])) out += "\\";
    out += text[i];
  }
  return out;
}

// regexpText returns the source of the regular expression for the parts.
function regexpText(parts, options) {
  let out = "^";
  for (let i = 0; i < parts.length; i++) out += partRegexp(parts[i], options);
  return `${out}$`;
}

function partRegexp(part, options) {
  const { modifier, type } = part;
  if (type === "fixed") {
    const text = escapeText(part.value, REGEXP_SYNTAX);
    return modifier === "" ? text : `(?:${text})${modifier}`;
  }
  const value = type === "segment" ? segmentWildcard(options) : type === "full" ? FULL_WILDCARD : part.value;
  const once = modifier === "" || modifier === "?";
  if (part.prefix === "" && part.suffix === "") return once ? `(${value})${modifier}` : `((?:${value})${modifier})`;
  const prefix = escapeText(part.prefix, REGEXP_SYNTAX);
  const suffix = escapeText(part.suffix, REGEXP_SYNTAX);
  if (once) return `(?:${prefix}(${value})${suffix})${modifier}`;
  return `(?:${prefix}((?:${value})(?:${suffix}${prefix}(?:${value}))*)${suffix})${modifier === "*" ? "?" : ""}`;
}

// patternText returns the pattern string for the parts.
function patternText(parts, options) {
  let out = "";
  for (let i = 0; i < parts.length; i++) {
    const part = parts[i];
    if (part.type !== "fixed") {
      out += groupText(part, i > 0 ? parts[i - 1] : null, i + 1 < parts.length ? parts[i + 1] : null, options);
      continue;
    }
    const text = escapeText(part.value, PATTERN_SYNTAX);
    out += part.modifier === "" ? text : `{${text}}${part.modifier}`;
  }
  return out;
}

function isDigitName(name) {
  return name !== "" && name[0] >= "0" && name[0] <= "9";
}

function firstCharacter(text) {
  return text === "" ? "" : StringFromCodePoint(StringPrototypeCodePointAt(text, 0));
}

function needsBraces(part, previous, next, options) {
  if (part.suffix !== "" || (part.prefix !== "" && part.prefix !== options.prefix)) return true;
  const named = !isDigitName(part.name);
  if (named && part.type === "segment" && part.modifier === "" && next !== null && next.prefix === "" && next.suffix === "") {
    if (next.type === "fixed" ? isNameCharacter(firstCharacter(next.value), false) : isDigitName(next.name)) return true;
  }
  return part.prefix === "" && previous !== null && previous.type === "fixed" && options.prefix !== "" &&
    previous.value[previous.value.length - 1] === options.prefix;
}

function groupText(part, previous, next, options) {
  const braces = needsBraces(part, previous, next, options);
  const named = !isDigitName(part.name);
  let out = `${braces ? "{" : ""}${escapeText(part.prefix, PATTERN_SYNTAX)}${named ? `:${part.name}` : ""}`;
  if (part.type === "regexp") out += `(${part.value})`;
  else if (part.type === "segment") {
    if (!named) out += `(${segmentWildcard(options)})`;
  } else if (!named && (previous === null || previous.type === "fixed" || previous.modifier !== "" || braces || part.prefix !== "")) {
    out += "*";
  } else out += `(${FULL_WILDCARD})`;
  if (part.type === "segment" && named && part.suffix !== "" && isNameCharacter(firstCharacter(part.suffix), false)) out += "\\";
  return `${out}${escapeText(part.suffix, PATTERN_SYNTAX)}${braces ? "}" : ""}${part.modifier}`;
}

// ---- components ----

// Component is one compiled component. The first match that needs its regular expression makes it. The exception is a
// regular expression by the author of the pattern, which can be invalid. A component with only fixed text or only a
// wildcard needs no regular expression, because the matched components never have a line break.
class Component {
  pattern;
  names = new List();
  custom = false; // it has a regular expression by the author of the pattern
  fixed = null; // the only text that it matches
  any = false; // it matches everything
  source;
  flags;
  regexp = null;
  constructor(parts, options) {
    this.pattern = patternText(parts, options);
    for (let i = 0; i < parts.length; i++) {
      if (parts[i].type === "fixed") continue;
      this.names[this.names.length] = parts[i].name;
      if (parts[i].type === "regexp") this.custom = true;
    }
    this.source = regexpText(parts, options);
    this.flags = options.ignoreCase ? "vi" : "v";
    if (parts.length === 0) this.fixed = "";
    else if (parts.length === 1) {
      const { modifier, prefix, suffix, type, value } = parts[0];
      if (type === "fixed" && modifier === "" && !options.ignoreCase) this.fixed = value;
      this.any = type === "full" && modifier === "" && prefix === "" && suffix === "";
    }
    if (this.custom) this.compile();
  }
  compile() {
    try {
      this.regexp = new RegExp(this.source, this.flags);
    } catch {
      throw new TypeError(`URLPattern: ${internal.inspectBrief(this.pattern)} has an invalid regular expression`);
    }
  }
  // match returns the values of the groups from index 1 on, or null.
  match(input) {
    if (this.any) return [input, input];
    if (this.fixed !== null) return this.fixed === input ? [input] : null;
    if (this.regexp === null) this.compile();
    return RegExpPrototypeExec(this.regexp, input);
  }
}
sealedProto(Component);

primordials.ObjectAssign(internal.urlPatternParts, {
  Options,
  PATTERN_SYNTAX,
  escapeText,
  compile: (input, encode, options) => new Component(new PatternParser(input, options, encode).run(), options),
});
