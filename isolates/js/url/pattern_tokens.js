// url/pattern_tokens.js is the tokenizer of the URL Pattern standard.

"use strict";

const {
  List, RegExp, RegExpPrototypeExec, StringFromCodePoint, StringPrototypeCharCodeAt, StringPrototypeCodePointAt,
  StringPrototypeSlice, TypeError, sealedProto,
} = primordials;

// ---- tokens ----

class Token {
  type;
  index;
  value;
  constructor(type, index, value) {
    this.type = type;
    this.index = index;
    this.value = value;
  }
}
sealedProto(Token);

// The code makes these at first use, because a snapshot cannot keep them.
let idStart = null;
let idContinue = null;

// isNameCharacter takes one code point as text and returns whether it is allowed in a name, or at the start of a
// name.
function isNameCharacter(c, first) {
  if (c === "") return false;
  const code = StringPrototypeCharCodeAt(c, 0);
  if (code < 128) {
    return (code >= 97 && code <= 122) || (code >= 65 && code <= 90) || code === 95 || code === 36 ||
      (!first && code >= 48 && code <= 57);
  }
  if (!first && (c === "\u200c" || c === "\u200d")) return true;
  idStart ??= new RegExp("^\\p{ID_Start}$", "u");
  idContinue ??= new RegExp("^\\p{ID_Continue}$", "u");
  return RegExpPrototypeExec(first ? idStart : idContinue, c) !== null;
}

class Tokenizer {
  input;
  lenient;
  tokens = new List();
  index = 0; // the start of the token
  next = 0; // the index after the code point c
  c = "";
  constructor(input, lenient) {
    this.input = input;
    this.lenient = lenient;
  }
  seek(at) {
    this.c = StringFromCodePoint(StringPrototypeCodePointAt(this.input, at));
    this.next = at + this.c.length;
  }
  add(type, next, start, end = next) {
    this.tokens[this.tokens.length] = new Token(type, this.index, StringPrototypeSlice(this.input, start, end));
    this.index = next;
  }
  fail(next, start) {
    if (!this.lenient) {
      throw new TypeError(`URLPattern: ${internal.inspectBrief(this.input)} is no pattern: see index ${start}`);
    }
    this.add("invalid-char", next, start);
  }
  run() {
    while (this.index < this.input.length) {
      this.seek(this.index);
      switch (this.c) {
        case "*": this.add("asterisk", this.next, this.index); break;
        case "+":
        case "?": this.add("other-modifier", this.next, this.index); break;
        case "{": this.add("open", this.next, this.index); break;
        case "}": this.add("close", this.next, this.index); break;
        case "\\": this.escaped(); break;
        case ":": this.name(); break;
        case "(": this.regexp(); break;
        default: this.add("char", this.next, this.index);
      }
    }
    this.add("end", this.index, this.index);
    return this.tokens;
  }
  escaped() {
    if (this.index === this.input.length - 1) {
      this.fail(this.next, this.index);
      return;
    }
    const start = this.next;
    this.seek(start);
    this.add("escaped-char", this.next, start);
  }
  name() {
    const start = this.next;
    let at = start;
    while (at < this.input.length) {
      this.seek(at);
      if (!isNameCharacter(this.c, at === start)) break;
      at = this.next;
    }
    if (at <= start) this.fail(start, this.index);
    else this.add("name", at, start);
  }
  regexp() {
    const start = this.next;
    const end = this.regexpEnd(start);
    if (end === -1 || end - start - 1 === 0) this.fail(start, this.index);
    else this.add("regexp", end, start, end - 1);
  }
  // regexpEnd returns the index after the parenthesis that closes the group, or -1.
  regexpEnd(start) {
    const last = this.input.length - 1;
    let depth = 1;
    for (let at = start; at < this.input.length; at = this.next) {
      this.seek(at);
      if (StringPrototypeCharCodeAt(this.c, 0) > 127 || (at === start && this.c === "?")) return -1;
      if (this.c === "\\") {
        if (at === last) return -1;
        this.seek(this.next);
        if (StringPrototypeCharCodeAt(this.c, 0) > 127) return -1;
      } else if (this.c === ")") {
        if (--depth === 0) return this.next;
      } else if (this.c === "(") {
        depth++;
        if (at === last || this.input[this.next] !== "?") return -1;
      }
    }
    return -1;
  }
}
sealedProto(Tokenizer);

internal.urlPatternParts = {
  __proto__: null,
  isNameCharacter,
  tokenize: (input, lenient) => new Tokenizer(input, lenient).run(),
};
