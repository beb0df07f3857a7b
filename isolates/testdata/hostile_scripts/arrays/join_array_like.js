// join of an array-like of length 2**32
// outcome: exception

export default { fetch() { return new Response(Array.prototype.join.call({ length: 2 ** 32 }, "")); } };
