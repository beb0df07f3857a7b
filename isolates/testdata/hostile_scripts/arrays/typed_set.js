// set of a typed array from an array-like of length 2**53-1
// outcome: exception

export default { fetch() { new Uint8Array(8).set({ length: 2 ** 53 - 1 }); return new Response("ok"); } };
