// 25_performance.js is performance.now and timeOrigin. The host's clock is coarse already; nothing finer is offered.

"use strict";

const { EventTarget, TOKEN, defineGlobal, defineInterface, illegalConstructor, illegalInvocation } = internal;
const { now } = host;

class Performance extends EventTarget {
  #brand;
  constructor(token) {
    if (token !== TOKEN) throw illegalConstructor();
    super();
    this.#brand = true;
  }
  now() {
    if (!(#brand in this)) throw illegalInvocation("Performance");
    return now();
  }
  get timeOrigin() {
    if (!(#brand in this)) throw illegalInvocation("Performance");
    return host.timeOrigin;
  }
  toJSON() {
    if (!(#brand in this)) throw illegalInvocation("Performance");
    return { timeOrigin: host.timeOrigin };
  }
}
defineInterface(Performance, "Performance");
defineGlobal("performance", new Performance(TOKEN), true);
