// a sort of an array of length 2**32-1
// outcome: cpu, memory, exception
// endless

export default { fetch() { const a = []; a[2 ** 32 - 2] = 1; a.sort(); return new Response("ok"); } };
