// ten thousand selectors
// outcome: ok

export default { fetch() { const r = new HTMLRewriter(); let n = 0; try { for (let i = 0; i < 1e4; i++) { r.on("a.b" + i, {}); n++; } } catch (e) { return new Response(n < 1024 && /parts/.test(e.message) ? "ok" : e.message); } return new Response("had them"); } };
