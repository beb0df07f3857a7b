// a page with a hundred thousand tags, one in the other
// outcome: ok

export default { async fetch() { try { await new HTMLRewriter().on("a b", { element() {} }).transform(new Response("<a>".repeat(1e5))).text(); } catch (e) { return new Response(/nested too deep/.test(e.message) ? "ok" : e.message); } return new Response("had it"); } };
