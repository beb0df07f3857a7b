// apply with an array-like object of length 2**31
// outcome: exception

export default { fetch() { Math.max.apply(null, { length: 2 ** 31 }); return new Response("ok"); } };
