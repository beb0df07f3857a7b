// well-known symbols on Object.prototype
// outcome: ok
// events: 2

export default { fetch() { for (const s of [Symbol.toPrimitive, Symbol.toStringTag, Symbol.isConcatSpreadable, Symbol.hasInstance, Symbol.iterator, Symbol.asyncIterator, Symbol.match, Symbol.unscopables]) Object.defineProperty(Object.prototype, s, { configurable: true, get() { throw new Error("mine"); } }); return new Response("ok"); } };
