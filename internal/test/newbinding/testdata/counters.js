// bindings/counters.js is a counter: add(n) gives the sum of all that was added.

"use strict";

const { List, ObjectFreeze } = primordials;
const { TOKEN, callBinding, defineInterface, illegalConstructor, illegalInvocation, isObject, requireArguments, toUnrestrictedDouble } = internal;

class Counter {
  #name;
  constructor(token = undefined, name) {
    if (token !== TOKEN) throw illegalConstructor();
    this.#name = name;
  }
  async add(n) {
    if (!isObject(this) || !(#name in this)) throw illegalInvocation("Counter");
    requireArguments(arguments.length, 1, "Counter.add");
    const texts = new List();
    texts[0] = `${toUnrestrictedDouble(n)}`;
    return await callBinding("counters", this.#name, "add", texts, "", (sum) => +sum[0]);
  }
}
defineInterface(Counter, "Counter", true);

internal.bindingKinds.counters = (name) => ObjectFreeze(new Counter(TOKEN, name));
