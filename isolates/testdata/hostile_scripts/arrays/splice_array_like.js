// splice of an array-like of length 2**53-1
// outcome: cpu
// endless

export default { fetch() { Array.prototype.splice.call({ length: 2 ** 53 - 1, constructor: undefined }, 1, 1); return new Response("ok"); } };
