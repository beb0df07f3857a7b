// a thenable that resolves to itself
// outcome: cpu, memory

export default { async fetch() { const t = { then(f) { f(t); } }; await t; return new Response("ok"); } };
