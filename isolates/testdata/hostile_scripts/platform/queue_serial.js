// sends one after the other, for ever
// outcome: exception, cpu

export default { async fetch(r, env, ctx) { for (let i = 0; ; i++) await env.JOBS.send({ i }); } };
