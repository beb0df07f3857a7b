// new Array(2**32-1).fill(1)
// outcome: cpu, memory
// parks

export default { fetch() { return new Response(String(new Array(2 ** 32 - 1).fill(1).length)); } };
