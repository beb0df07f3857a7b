// runtime/pair_iterator.js adds to interfaces the members that Web IDL's iterable<key, value> declares.

"use strict";

const { IteratorPrototype, ObjectCreate, ObjectDefineProperty, ObjectSetPrototypeOf, ReflectApply, SymbolIterator } = primordials;
const { defineAlias, defineTag, illegalInvocation, requireArguments, toCallback } = internal;

// definePairIterator adds keys, values, entries, forEach and Symbol.iterator over pairs to an interface.
// pairs(object) must return a flat list key, value, … of the current state. It throws when object does not implement
// the interface.
function definePairIterator(Class, name, pairs) {
  class PairIterator {
    #target;
    #kind;
    #index = 0;
    constructor(target, kind) {
      this.#target = target;
      this.#kind = kind;
    }
    static next(self) {
      if (typeof self !== "object" || self === null || !(#target in self)) throw illegalInvocation(`${name} Iterator`);
      const list = pairs(self.#target);
      const at = self.#index * 2;
      if (at >= list.length) return { value: undefined, done: true };
      self.#index++;
      const key = list[at];
      const value = list[at + 1];
      return { value: self.#kind === 0 ? key : self.#kind === 1 ? value : [key, value], done: false };
    }
  }
  const next = PairIterator.next;
  const proto = ObjectCreate(IteratorPrototype);
  ObjectDefineProperty(proto, "next",
    { __proto__: null, value: { next() { return next(this); } }.next, writable: true, enumerable: true, configurable: true });
  defineTag(proto, `${name} Iterator`);
  ObjectSetPrototypeOf(PairIterator.prototype, proto);
  // The code skips the iterator's own class prototype, so that handler code cannot reach a constructor.
  const create = (target, kind) => {
    pairs(target);
    return ObjectSetPrototypeOf(new PairIterator(target, kind), proto);
  };
  const members = {
    entries() { return create(this, 2); },
    keys() { return create(this, 0); },
    values() { return create(this, 1); },
    forEach(callback, thisArg = undefined) {
      pairs(this);
      requireArguments(arguments.length, 1, `${name}.forEach`);
      toCallback(callback, `${name}.forEach: the callback`);
      for (let i = 0; ; i += 2) {
        const list = pairs(this);
        if (i >= list.length) return;
        ReflectApply(callback, thisArg, [list[i + 1], list[i], this]);
      }
    },
  };
  const keys = ["entries", "keys", "values", "forEach"];
  for (let i = 0; i < keys.length; i++) {
    ObjectDefineProperty(Class.prototype, keys[i],
      { __proto__: null, value: members[keys[i]], writable: true, enumerable: true, configurable: true });
  }
  defineAlias(Class.prototype, SymbolIterator, members.entries);
}

internal.definePairIterator = definePairIterator;
