// a hundred thousand sends
// outcome: cpu, memory, exception, ok

export default { async fetch(r, env) { const all = []; for (let i = 0; i < 1e5; i++) all.push(env.JOBS.send({ i })); await Promise.allSettled(all); return new Response("ok"); } };
