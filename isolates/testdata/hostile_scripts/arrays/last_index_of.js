// lastIndexOf on a sparse array of 2**32-1
// outcome: cpu, ok
// endless

export default { fetch() { const a = new Array(2 ** 32 - 1); a.lastIndexOf(1); a.includes(1); return new Response("ok"); } };
