// Promise with a species and a then that keep everything
// outcome: ok
// events: 2

export default { fetch(r, env, ctx) { Object.defineProperty(Promise, Symbol.species, { get() { for (;;); } }); Promise.prototype.finally = Promise.prototype.catch = () => { for (;;); }; ctx.waitUntil(Promise.resolve(1)); return new Response("ok"); } };
