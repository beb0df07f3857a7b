// waitUntil a million times
// outcome: cpu, memory, ok

export default { fetch(r, env, ctx) { for (let i = 0; i < 1e6; i++) ctx.waitUntil(1); return new Response("ok"); } };
