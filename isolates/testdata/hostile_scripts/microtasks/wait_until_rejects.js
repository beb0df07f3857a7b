// a hundred thousand rejected waitUntil promises
// outcome: cpu, memory, ok

export default { fetch(r, env, ctx) { for (let i = 0; i < 1e5; i++) ctx.waitUntil(Promise.reject(new Error("w" + i))); return new Response("ok"); } };
