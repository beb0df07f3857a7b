// toSorted, toSpliced and with on array-like objects of length 2**32-1
// outcome: memory, cpu, exception
// parks

export default { fetch() { Array.prototype.toSorted.call({ length: 2 ** 32 - 1 }); return new Response("ok"); } };
