// the request cloned and read many times
// outcome: memory, cpu, exception, ok
// body

export default { async fetch(request) { const all = []; for (let i = 0; i < 100; i++) all.push(request.clone().text()); for (const t of all) await t; return new Response("ok"); } };
