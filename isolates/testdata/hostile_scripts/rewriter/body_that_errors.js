// a body that fails in the middle of a page
// outcome: ok

export default { async fetch() { let n = 0; const page = new ReadableStream({ pull(c) { if (n++ === 0) c.enqueue(new TextEncoder().encode("<a>")); else c.error(new RangeError("mine")); } }); try { await new HTMLRewriter().on("a", { element(e) { e.append("x"); } }).transform(new Response(page)).text(); } catch (e) { return new Response(e.message === "mine" ? "ok" : e.message); } return new Response("had it"); } };
