// waitUntil that calls waitUntil, for ever
// outcome: ok
// cut

export default { fetch(r, env, ctx) { const f = () => { ctx.waitUntil(new Promise((done) => setTimeout(done, 1)).then(f)); }; f(); return new Response("ok"); } };
