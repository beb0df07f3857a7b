// an endless loop of awaits behind the reply; it is cut when the reply is out
// outcome: ok
// cut

export default { fetch(r, env, ctx) { ctx.waitUntil(new Promise((done) => setTimeout(done, 5)).then(async () => { for (;;) await null; })); return new Response("ok"); } };
