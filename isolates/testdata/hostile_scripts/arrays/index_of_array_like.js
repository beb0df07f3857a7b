// indexOf on an array-like object of length 2**53-1
// outcome: cpu, ok
// endless

export default { fetch() { Array.prototype.indexOf.call({ length: 2 ** 53 - 1 }, 1); return new Response("ok"); } };
