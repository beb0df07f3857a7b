// a thousand pages under way at once
// outcome: ok

export default { async fetch() { const all = []; let n = 0; for (let i = 0; i < 1000; i++) { const r = new HTMLRewriter().on("a", {}).transform(new Response(new ReadableStream({ start(c) { c.enqueue(new TextEncoder().encode("<a>")); } }))).body.getReader(); all.push(r.read().catch(() => { n++; })); } await all[999]; return new Response(n >= 900 ? "ok" : String(n)); } };
