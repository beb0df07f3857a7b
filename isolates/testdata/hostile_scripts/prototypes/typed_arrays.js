// typed arrays and ArrayBuffer patched, with species
// outcome: ok
// events: 2

export default { fetch() { const T = Object.getPrototypeOf(Uint8Array); for (const P of [T.prototype, ArrayBuffer.prototype, Uint8Array.prototype]) for (const k of Reflect.ownKeys(P)) try { Object.defineProperty(P, k, { get() { throw new Error("mine"); } }); } catch {} for (const C of [T, ArrayBuffer]) Object.defineProperty(C, Symbol.species, { get() { throw new Error("mine"); } }); return new Response("ok"); } };
