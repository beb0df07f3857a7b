// fetch/rewriter_states.js has the states of the tokens of an HTMLRewriter: what was in the page, and what handlers have
// made of it.

"use strict";

const {
  List, StringPrototypeCharCodeAt, StringPrototypeSlice, StringPrototypeToLowerCase, TypeError, lengthOf, sealedProto, subarray,
} = primordials;
const { toDOMString } = internal;
const { decode, encode } = host;

// ---- text ----

// escape makes HTML of a text.
function escape(text) {
  let out = "";
  let from = 0;
  for (let i = 0; i < text.length; i++) {
    const c = StringPrototypeCharCodeAt(text, i);
    const name = c === 38 ? "&amp;" : c === 60 ? "&lt;" : c === 62 ? "&gt;" : "";
    if (name === "") continue;
    out += StringPrototypeSlice(text, from, i) + name;
    from = i + 1;
  }
  return from === 0 ? text : out + StringPrototypeSlice(text, from);
}

// quoted escapes a value for double quotes.
function quoted(text) {
  let out = "";
  let from = 0;
  for (let i = 0; i < text.length; i++) {
    if (StringPrototypeCharCodeAt(text, i) !== 34) continue;
    out += `${StringPrototypeSlice(text, from, i)}&quot;`;
    from = i + 1;
  }
  return from === 0 ? text : out + StringPrototypeSlice(text, from);
}

// lower has only ASCII letters in lower case, as HTML compares names.
function lower(text) {
  let ascii = true;
  for (let i = 0; ascii && i < text.length; i++) ascii = StringPrototypeCharCodeAt(text, i) < 128;
  if (ascii) return StringPrototypeToLowerCase(text);
  let out = "";
  for (let i = 0; i < text.length; i++) {
    const c = StringPrototypeCharCodeAt(text, i);
    out += c >= 65 && c <= 90 ? StringPrototypeToLowerCase(text[i]) : text[i];
  }
  return out;
}

// endsName reports whether a character ends the name of a tag or an attribute.
function endsName(c) {
  return c === 9 || c === 10 || c === 12 || c === 13 || c === 32 || c === 47 || c === 62;
}

function checkName(name, what, first) {
  if (name === "") throw new TypeError(`${what}: the name is empty`);
  const c = StringPrototypeCharCodeAt(name, 0) | 32;
  if (first && (c < 97 || c > 122)) throw new TypeError(`${what}: the name does not begin with a letter`);
  for (let i = 0; i < name.length; i++) {
    const at = StringPrototypeCharCodeAt(name, i);
    if (endsName(at) || (!first && at === 61)) throw new TypeError(`${what}: the name has a character that is not allowed in it`);
  }
}

// ---- states ----

// Around is what handlers have put around a token, and in its place.
class Around {
  before = "";
  after = "";
  replacement = "";
  removed = false;
}
sealedProto(Around);

class TextState extends Around {
  text;
  last;
  constructor(text, last) {
    super();
    this.text = text;
    this.last = last;
  }
}

class CommentState extends Around {
  text;
  changed = false;
  constructor(text) {
    super();
    this.text = text;
  }
}

class DoctypeState {
  name;
  publicId;
  systemId;
  constructor(name, publicId, systemId) {
    this.name = name;
    this.publicId = publicId;
    this.systemId = systemId;
  }
}
sealedProto(DoctypeState);

class EndTagState extends Around {
  name;
  renamed = false;
  constructor(name) {
    super();
    this.name = name;
  }
}

class DocumentEndState {
  text = "";
}
sealedProto(DocumentEndState);

// Attribute is one of an element. raw is how it is written, or null if a handler has set it.
class Attribute {
  name;
  value;
  written; // its name as it is written
  raw;
  constructor(name, value, written, raw) {
    this.name = name;
    this.value = value;
    this.written = written;
    this.raw = raw;
  }
}
sealedProto(Attribute);

class ElementState extends Around {
  bytes; // of the step
  numbers; // the attributes in the record begin at
  at;
  name;
  changed = false; // the tag is not as it was written
  renamed = false;
  list = null; // of Attributes, once they are read
  content; // it has content and an end tag
  selfClosed;
  space;
  emptied = false; // its content is removed
  end = null; // an Around, of its end tag
  onEnd = null; // the handler of its end tag
  constructor(bytes, numbers, at, name, flags) {
    super();
    this.bytes = bytes;
    this.numbers = numbers;
    this.at = at;
    this.name = name;
    this.content = (flags & 1) !== 0;
    this.selfClosed = (flags & 2) !== 0;
    this.space = flags >> 2;
  }
  attributes() {
    if (this.list !== null) return this.list;
    const list = new List();
    const { bytes, numbers } = this;
    const count = numbers[this.at];
    const part = (i) => decode(subarray(bytes, numbers[i], numbers[i + 1]), false);
    for (let i = this.at + 1, n = 0; n < count; n++, i += 5) {
      const written = part(i);
      list[n] = new Attribute(lower(written), part(i + 2), written, subarray(bytes, numbers[i], numbers[i + 4]));
    }
    return (this.list = list);
  }
  find(name) {
    const list = this.attributes();
    const key = lower(toDOMString(name));
    for (let i = 0; i < list.length; i++) if (list[i].name === key) return i;
    return -1;
  }
  set(name, value) {
    checkName(name, "Element.setAttribute", false);
    const i = this.find(name);
    const list = this.attributes();
    if (i === -1) {
      const key = lower(name);
      list[list.length] = new Attribute(key, value, key, null);
    } else {
      list[i].value = value;
      list[i].raw = null;
    }
    this.changed = true;
  }
  delete(name) {
    const i = this.find(name);
    if (i === -1) return;
    const list = new List();
    for (let j = 0; j < this.list.length; j++) if (j !== i) list[list.length] = this.list[j];
    this.list = list;
    this.changed = true;
  }
  // ending is what is put around the end tag.
  ending() { return (this.end ??= new Around()); }
  empty() {
    if (!this.content) return;
    this.emptied = true;
    this.after = "";
    if (this.end !== null) this.end.before = "";
  }
  remove(replacement) {
    this.removed = true;
    this.replacement = replacement;
    if (!this.content) return;
    this.empty();
    this.ending().removed = true;
  }
}

primordials.ObjectAssign(internal, {
  rewriterStates: {
    __proto__: null, CommentState, DoctypeState, DocumentEndState, ElementState, EndTagState, TextState, checkName, escape, lower, quoted,
  },
});
