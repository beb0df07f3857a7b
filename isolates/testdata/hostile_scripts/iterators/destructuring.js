// destructuring with a rest of endless items
// outcome: cpu, memory

export default { fetch() { const [a, ...b] = (function* () { for (;;) yield 1; })(); return new Response("ok"); } };
