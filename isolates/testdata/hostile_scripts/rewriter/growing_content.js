// a handler that makes each element longer than the page
// outcome: cpu, memory, exception, timeout

export default { async fetch() { const big = "x".repeat(1 << 20); const t = await new HTMLRewriter().on("a", { element(e) { for (let i = 0; i < 10; i++) e.after(big); } }).transform(new Response("<a></a>".repeat(1e4))).text(); return new Response(String(t.length)); } };
