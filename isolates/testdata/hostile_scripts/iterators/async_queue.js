// a million calls of next of an async generator at once
// outcome: cpu, memory

export default { async fetch() { const g = (async function* () { for (;;) yield new Array(100); })(); const a = []; for (let i = 0; i < 1e6; i++) a.push(g.next()); await Promise.all(a); return new Response("ok"); } };
