// a page with an attribute of 100 MB
// outcome: ok

const of = (n, piece) => new ReadableStream({ pull(c) { if (n-- > 0) c.enqueue(new TextEncoder().encode(piece)); else c.close(); } }); export default { async fetch() { let n = 0; const parts = [`<a b="`]; const page = new ReadableStream({ pull(c) { c.enqueue(new TextEncoder().encode(n++ === 0 ? `<a b="` : "x".repeat(1 << 16))); if (n > 1600) c.close(); } }); try { await new HTMLRewriter().on("a", { element() {} }).transform(new Response(page)).text(); } catch (e) { return new Response(/more than 1048576 bytes/.test(e.message) ? "ok" : e.message); } return new Response("had it"); } };
