// setters for indices on Array.prototype and Object.prototype
// outcome: ok
// events: 2

export default { fetch() { for (const P of [Array.prototype, Object.prototype]) for (let i = 0; i < 20; i++) Object.defineProperty(P, i, { configurable: true, get() { throw new Error("get"); }, set() { throw new Error("set"); } }); return new Response("ok", { headers: { a: "b" } }); } };
