// a page that is cancelled in one of its handlers
// outcome: ok

export default { async fetch() { let reader, n = 0; const out = new HTMLRewriter().on("a", { element(e) { n++; reader.cancel("enough").catch(() => {}); e.append("x"); } }).transform(new Response("<a></a>".repeat(100))); reader = out.body.getReader(); const r = await reader.read(); return new Response(r.done && n === 1 ? "ok" : `${r.done} ${n}`); } };
