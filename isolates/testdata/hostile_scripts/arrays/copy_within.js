// copyWithin on an array-like object of length 2**53-1
// outcome: cpu, memory, ok
// endless

export default { fetch() { Array.prototype.copyWithin.call({ length: 2 ** 53 - 1 }, 5, 0); return new Response("ok"); } };
