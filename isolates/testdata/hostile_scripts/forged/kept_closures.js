// closures of the last event that act in the next
// outcome: ok
// events: 3

let late;
export default { fetch(r, env, ctx) { late?.(); late = () => { try { ctx.waitUntil(Promise.reject(1)); } catch {} setTimeout(() => {}, 1); console.log("from the past"); r.text().catch(() => {}); }; return new Response("ok"); } };
