// a handler that rewrites a page with its own rewriter
// outcome: ok

export default { async fetch() { const r = new HTMLRewriter(); let n = 0; r.on("a", { async element(e) { n++; e.append(await r.transform(new Response("<a>")).text()); } }); try { await r.transform(new Response("<a></a>")).text(); } catch (e) { return new Response(n <= 9 && /too many pages/.test(e.message) ? "ok" : e.message); } return new Response("had it"); } };
