// a reply behind a million promises
// outcome: cpu, memory

export default { fetch() { let p = Promise.resolve(new Response("ok")); for (let i = 0; i < 1e6; i++) p = p.then((x) => x); return p; } };
