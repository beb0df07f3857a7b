// an async generator whose finally awaits for ever
// outcome: cpu, memory

export default { async fetch() { const g = (async function* () { try { for (;;) yield 1; } finally { for (;;) await null; } })(); for await (const x of g) break; return new Response("ok"); } };
