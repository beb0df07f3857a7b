// Array with a species that makes monsters
// outcome: ok
// events: 2

export default { fetch() { Object.defineProperty(Array, Symbol.species, { get() { return function () { for (;;); }; } }); Array.prototype.constructor = { [Symbol.species]: function () { return {}; } }; console.log([1, 2, 3]); const h = new Headers([["a", "b"]]); return new Response("ok", { headers: h }); } };
