// Reflect.apply with an array-like of length 2**32-1
// outcome: exception

export default { fetch() { Reflect.apply(() => {}, null, { length: 2 ** 32 - 1 }); return new Response("ok"); } };
