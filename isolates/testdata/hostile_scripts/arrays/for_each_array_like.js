// forEach of an array-like of length 2**53-1
// outcome: cpu
// endless

export default { fetch() { Array.prototype.forEach.call({ length: 2 ** 53 - 1 }, () => {}); return new Response("ok"); } };
