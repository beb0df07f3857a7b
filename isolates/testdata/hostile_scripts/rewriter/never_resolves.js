// a handler whose promise is never resolved
// outcome: timeout

export default { async fetch() { await new HTMLRewriter().on("a", { element() { return new Promise(() => {}); } }).transform(new Response("<a>")).text(); return new Response("ok"); } };
