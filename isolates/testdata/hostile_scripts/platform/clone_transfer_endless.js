// a transfer list without end
// outcome: cpu

export default { fetch() { structuredClone(1, { transfer: { [Symbol.iterator]: function* () { for (;;) yield new ArrayBuffer(8); } } }); return new Response("ok"); } };
