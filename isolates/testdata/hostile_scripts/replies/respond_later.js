// a reply a second after the handler, then a loop
// outcome: ok, cpu
// cut

export default { async fetch(r, env, ctx) { ctx.waitUntil((async () => { await new Promise((f) => setTimeout(f, 10)); for (;;); })()); return new Response("ok"); } };
