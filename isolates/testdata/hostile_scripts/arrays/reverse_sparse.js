// reverse of a sparse array of 2**32-1
// outcome: cpu, memory, ok
// endless

export default { fetch() { const a = []; a[2 ** 32 - 2] = 1; a.reverse(); return new Response("ok"); } };
