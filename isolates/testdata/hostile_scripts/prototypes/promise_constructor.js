// the constructor and species of promises replaced
// outcome: exception, ok
// events: 2

export default { async fetch() { Object.defineProperty(Promise.prototype, "constructor", { get() { throw new Error("mine"); } }); Object.defineProperty(Promise, Symbol.species, { get() { throw new Error("mine"); } }); return new Response("ok"); } };
