// join of a sparse array of 2**32-1
// outcome: exception

export default { fetch() { return new Response(new Array(2 ** 32 - 1).join("xx")); } };
