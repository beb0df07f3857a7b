// a send of 64 MB
// outcome: memory, cpu

export default { async fetch(r, env, ctx) { try { await env.JOBS.send("x".repeat(1 << 26)); } catch {} return new Response("ok"); } };
