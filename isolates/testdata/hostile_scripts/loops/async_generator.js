// an async generator whose return never ends
// outcome: cpu

export default { async fetch() { async function* g() { try { yield 1; } finally { for (;;) await 0; } } for await (const x of g()) break; } };
