// waitUntil that never ends, in mode oneshot
// outcome: ok
// mode: oneshot
// cut

export default { fetch(r, env, ctx) { ctx.waitUntil(new Promise(() => setInterval(() => {}, 10))); return new Response("ok"); } };
