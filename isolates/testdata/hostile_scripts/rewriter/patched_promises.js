// promises that are changed before a page is rewritten
// outcome: ok

export default { async fetch() { const then = Promise.prototype.then; Promise.prototype.then = function (a, b) { return then.call(this, typeof a === "function" ? (v) => a(v) : a, b); }; const out = await new HTMLRewriter().on("p", { async element(e) { await null; e.append("x"); } }).transform(new Response("<p>t</p>")).text(); return new Response(out === "<p>tx</p>" ? "ok" : out); } };
