// unshift of an array-like of length 2**53-2
// outcome: cpu
// endless

export default { fetch() { Array.prototype.unshift.call({ length: 2 ** 53 - 2 }, 1); return new Response("ok"); } };
