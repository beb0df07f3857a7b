// waitUntil of a promise that never settles, with nothing pending
// outcome: ok
// cut

export default { fetch(r, env, ctx) { ctx.waitUntil(new Promise(() => {})); return new Response("ok"); } };
