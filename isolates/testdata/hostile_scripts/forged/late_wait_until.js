// waitUntil of an event that is over
// outcome: ok, exception
// events: 2

let old;
export default { fetch(r, env, ctx) { if (old) old.waitUntil(new Promise(() => {})); old = ctx; return new Response("ok"); } };
