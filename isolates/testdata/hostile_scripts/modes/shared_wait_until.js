// waitUntil that never ends, in mode shared
// outcome: ok
// mode: shared
// cut

export default { fetch(r, env, ctx) { ctx.waitUntil(new Promise(() => setInterval(() => {}, 10))); return new Response("ok"); } };
