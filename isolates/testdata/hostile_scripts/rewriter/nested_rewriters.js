// a thousand rewriters inside each other
// outcome: exception

export default { async fetch() { let r = new Response("<a>"); for (let i = 0; i < 1000; i++) r = new HTMLRewriter().on("a", { element(e) { e.after("<a>", { html: true }); } }).transform(r); await r.text(); return new Response("ok"); } };
