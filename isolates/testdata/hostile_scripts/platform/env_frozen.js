// env and ctx, written to
// outcome: ok
// events: 3

export default { fetch(r, env, ctx) { for (const o of [env, ctx, r, r.headers]) for (const k of [...Object.keys(o), "JOBS", "waitUntil", "url"]) try { Object.defineProperty(o, k, { get() { for (;;); } }); } catch {} return new Response("ok"); } };
