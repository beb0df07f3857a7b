// a page without end
// outcome: cpu, memory, timeout

const of = (n, piece) => new ReadableStream({ pull(c) { if (n-- > 0) c.enqueue(new TextEncoder().encode(piece)); else c.close(); } }); export default { async fetch() { let n = 0; for await (const c of new HTMLRewriter().on("a", { element(e) { e.after("b"); } }).transform(new Response(of(Infinity, "<a>t</a>".repeat(1000)))).body) n += c.length; return new Response("ok"); } };
