// waitUntil that never ends, in mode persistent
// outcome: ok
// mode: persistent
// cut

export default { fetch(r, env, ctx) { ctx.waitUntil(new Promise(() => setInterval(() => {}, 10))); return new Response("ok"); } };
