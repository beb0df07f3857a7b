// with and toSpliced of the longest array
// outcome: cpu
// endless

export default { fetch() { const a = new Array(2 ** 32 - 1); a.with(0, 1); a.toSpliced(0, 1); return new Response("ok"); } };
