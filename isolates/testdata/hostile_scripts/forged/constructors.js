// the runtime's own classes constructed
// outcome: ok

export default { fetch(request, env, ctx) { for (const C of [ctx.constructor, AbortSignal, Crypto, SubtleCrypto, CryptoKey, Navigator, Performance].filter((x) => typeof x === "function")) for (const args of [[], [{}], [Object.freeze({ __proto__: null })], [Symbol("TOKEN"), { id: 1 }]]) { try { new C(...args); return new Response("made " + C.name); } catch (e) { if (!(e instanceof TypeError)) throw e; } } return new Response("ok"); } };
