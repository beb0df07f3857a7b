// fetch/rewriter_tokens.js has what the handlers of an HTMLRewriter get: Element, EndTag, Text, Comment, Doctype and
// DocumentEnd. Handlers of the same token share its state. Each has an object of its own, which ends with the handler.

"use strict";

const {
  IteratorPrototype, ObjectCreate, ObjectDefineProperty, ObjectSetPrototypeOf, ReflectGetOwnPropertyDescriptor, ReflectOwnKeys,
  StringPrototypeIncludes, TypeError,
} = primordials;
const { TOKEN, defineInterface, defineTag, illegalConstructor, illegalInvocation, isObject, requireArguments, toDOMString } = internal;
const { checkName, escape, lower } = internal.rewriterStates;

const GONE = "this token is no longer valid: it ends when its handler has returned, or the promise of the handler is settled";

// toContent converts the arguments of before() and the like to HTML.
function toContent(args, what) {
  requireArguments(args.length, 1, what);
  const content = args[0];
  if (isObject(content) && (internal.isReadableStream(content) || internal.peekResponse(content) !== undefined)) {
    throw new TypeError(`${what}: the content is a stream; it must be a string`);
  }
  const text = toDOMString(content);
  const options = args[1];
  if (options === undefined || options === null) return escape(text);
  if (!isObject(options)) throw new TypeError(`${what}: the options are not an object`);
  return options.html ? text : escape(text);
}

// ---- interfaces ----

// tokenClass makes an interface whose objects have a state until end is called. members gets a function that returns the state
// of an object. It returns the class, and how one of its objects is made and ended.
function tokenClass(name, members) {
  let make;
  let finish;
  let read;
  const Class = {
    [name]: class {
      #state;
      constructor(token = undefined, state) {
        if (token !== TOKEN) throw illegalConstructor();
        this.#state = state;
      }
      static {
        make = (state) => new this(TOKEN, state);
        finish = (object) => { object.#state = null; };
        read = (object) => {
          if (!isObject(object) || !(#state in object)) throw illegalInvocation(name);
          if (object.#state === null) throw new TypeError(GONE);
          return object.#state;
        };
      }
    },
  }[name];
  internal.copyMembers(Class, members(read));
  defineInterface(Class, name, true);
  return { __proto__: null, make, finish };
}

// around are the methods that most tokens have.
const around = (read, name) => ({
  get removed() { return read(this).removed; },
  before(content, options = undefined) {
    const state = read(this);
    const text = toContent(arguments, `${name}.before`); // first: its conversion may call this method
    state.before += text;
    return this;
  },
  after(content, options = undefined) {
    const state = read(this);
    state.after = toContent(arguments, `${name}.after`) + state.after;
    return this;
  },
  replace(content, options = undefined) {
    const state = read(this);
    const text = toContent(arguments, `${name}.replace`);
    state.removed = true;
    state.replacement = text;
    return this;
  },
  remove() {
    const state = read(this);
    state.removed = true;
    state.replacement = "";
    return this;
  },
});

// both returns an object with the members of two.
function both(a, b) {
  const out = ObjectCreate(null);
  const parts = [a, b];
  for (let i = 0; i < 2; i++) {
    const keys = ReflectOwnKeys(parts[i]);
    for (let j = 0; j < keys.length; j++) {
      ObjectDefineProperty(out, keys[j], ObjectSetPrototypeOf(ReflectGetOwnPropertyDescriptor(parts[i], keys[j]), null));
    }
  }
  return out;
}

const spaces = ["http://www.w3.org/1999/xhtml", "http://www.w3.org/2000/svg", "http://www.w3.org/1998/Math/MathML"];

const element = tokenClass("Element", (read) => both(around(read, "Element"), {
  get tagName() { return lower(read(this).name); },
  set tagName(value) {
    const state = read(this);
    const name = toDOMString(value);
    checkName(name, "Element.tagName", true);
    state.name = name;
    state.changed = true;
    state.renamed = true;
  },
  get attributes() {
    read(this);
    return newIterator(this, read);
  },
  get namespaceURI() { return spaces[read(this).space]; },
  getAttribute(name) {
    const state = read(this);
    requireArguments(arguments.length, 1, "Element.getAttribute");
    const i = state.find(name);
    return i === -1 ? null : state.list[i].value;
  },
  hasAttribute(name) {
    const state = read(this);
    requireArguments(arguments.length, 1, "Element.hasAttribute");
    return state.find(name) !== -1;
  },
  setAttribute(name, value) {
    const state = read(this);
    requireArguments(arguments.length, 2, "Element.setAttribute");
    state.set(toDOMString(name), toDOMString(value));
    return this;
  },
  removeAttribute(name) {
    const state = read(this);
    requireArguments(arguments.length, 1, "Element.removeAttribute");
    state.delete(name);
    return this;
  },
  after(content, options = undefined) {
    const state = read(this);
    const text = toContent(arguments, "Element.after");
    const where = state.content ? state.ending() : state;
    where.after = text + where.after;
    return this;
  },
  prepend(content, options = undefined) {
    const state = read(this);
    const text = toContent(arguments, "Element.prepend");
    if (state.content) state.after = text + state.after;
    return this;
  },
  append(content, options = undefined) {
    const state = read(this);
    const text = toContent(arguments, "Element.append");
    if (state.content) state.ending().before += text;
    return this;
  },
  setInnerContent(content, options = undefined) {
    const state = read(this);
    const text = toContent(arguments, "Element.setInnerContent");
    state.empty();
    if (state.content) state.after = text;
    return this;
  },
  replace(content, options = undefined) {
    const state = read(this);
    state.remove(toContent(arguments, "Element.replace"));
    return this;
  },
  remove() {
    read(this).remove("");
    return this;
  },
  removeAndKeepContent() {
    const state = read(this);
    state.removed = true;
    if (state.content) state.ending().removed = true;
    return this;
  },
  onEndTag(handler) {
    const state = read(this);
    requireArguments(arguments.length, 1, "Element.onEndTag");
    internal.toCallback(handler, "Element.onEndTag: the handler");
    if (!state.content) throw new TypeError("Element.onEndTag: the element has no end tag");
    state.onEnd = handler;
  },
}));

// newIterator makes an iterator over the attributes of an element, which ends with the element's object.
let newIterator;

class AttributesIterator {
  #element;
  #read;
  #index = 0;
  constructor(owner, read) {
    this.#element = owner;
    this.#read = read;
  }
  static {
    const members = {
      next() {
        if (!isObject(this) || !(#element in this)) throw illegalInvocation("Attributes Iterator");
        const list = this.#read(this.#element).attributes();
        if (this.#index >= list.length) return { value: undefined, done: true };
        const { name, value } = list[this.#index++];
        return { value: [name, value], done: false };
      },
    };
    const proto = ObjectCreate(IteratorPrototype);
    ObjectDefineProperty(proto, "next", { __proto__: null, value: members.next, writable: true, enumerable: true, configurable: true });
    defineTag(proto, "Attributes Iterator");
    newIterator = (owner, read) => ObjectSetPrototypeOf(new AttributesIterator(owner, read), proto);
  }
}

const endTag = tokenClass("EndTag", (read) => {
  const { after, before, remove } = around(read, "EndTag");
  return both({ after, before, remove }, {
  get name() { return lower(read(this).name); },
  set name(value) {
    const state = read(this);
    const name = toDOMString(value);
    checkName(name, "EndTag.name", true);
    state.name = name;
    state.renamed = true;
  },
  });
});

const text = tokenClass("Text", (read) => both(around(read, "Text"), {
  get text() { return read(this).text; },
  get lastInTextNode() { return read(this).last; },
}));

const comment = tokenClass("Comment", (read) => both(around(read, "Comment"), {
  get text() { return read(this).text; },
  set text(value) {
    const state = read(this);
    const given = toDOMString(value);
    if (StringPrototypeIncludes(given, "-->")) throw new TypeError("Comment.text: the text ends the comment");
    state.text = given;
    state.changed = true;
  },
}));

const doctype = tokenClass("Doctype", (read) => ({
  get name() { return read(this).name; },
  get publicId() { return read(this).publicId; },
  get systemId() { return read(this).systemId; },
}));

const documentEnd = tokenClass("DocumentEnd", (read) => ({
  append(content, options = undefined) {
    const state = read(this);
    const text = toContent(arguments, "DocumentEnd.append");
    state.text += text;
    return this;
  },
}));

internal.rewriterTokens = { __proto__: null, comment, doctype, documentEnd, element, endTag, text };
