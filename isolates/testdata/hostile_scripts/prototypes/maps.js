// Map, Set, WeakMap and their iterators replaced
// outcome: ok
// events: 2

export default { fetch() { for (const C of [Map, Set, WeakMap, WeakSet, WeakRef]) for (const k of Object.getOwnPropertyNames(C.prototype)) Object.defineProperty(C.prototype, k, { configurable: true, get() { return () => { throw new Error("mine"); }; } }); setTimeout(() => {}, 1); return new Response("ok"); } };
