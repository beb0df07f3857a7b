// sends of what cannot be sent
// outcome: ok

export default { async fetch(r, env) { const cyclic = {}; cyclic.c = cyclic; for (const b of [cyclic, 1n, { toJSON() { throw new Error("x"); } }, Symbol("x"), undefined]) { try { await env.JOBS.send(b); } catch {} } return new Response("ok"); } };
