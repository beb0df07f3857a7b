// five hundred selectors that look at a long attribute of each tag
// outcome: cpu, timeout, exception

const of = (n, piece) => new ReadableStream({ pull(c) { if (n-- > 0) c.enqueue(new TextEncoder().encode(piece)); else c.close(); } }); export default { async fetch() { const r = new HTMLRewriter(); for (let i = 0; i < 500; i++) r.on(`[a*="${"x".repeat(20)}y${i}"]`, {}); await r.transform(new Response(of(1000, `<a a="${"x".repeat(1 << 18)}">`))).text(); return new Response("ok"); } };
