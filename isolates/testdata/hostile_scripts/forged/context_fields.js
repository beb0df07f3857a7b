// ctx, env and the request written to
// outcome: ok

export default { fetch(request, env, ctx) { "use strict"; for (const o of [ctx, env, request]) for (const k of ["run", "id", "over", "waiting", "waitUntil", "method", "url", "body", "headers", "signal"]) { try { o[k] = { forged: true }; } catch {} try { Object.defineProperty(o, k, { value: 1 }); } catch {} } return new Response("ok"); } };
