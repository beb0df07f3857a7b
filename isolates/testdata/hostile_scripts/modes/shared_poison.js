// poisoned prototypes in mode shared
// outcome: ok, cpu
// mode: shared
// events: 3

export default { fetch() { Promise.prototype.then = Array.prototype.push = Array.prototype[Symbol.iterator] = Function.prototype.call = JSON.stringify = () => { for (;;); }; return new Response("ok"); } };
