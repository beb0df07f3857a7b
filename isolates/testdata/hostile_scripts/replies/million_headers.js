// a million headers
// outcome: cpu, memory, exception

export default { fetch() { const h = new Headers(); for (let i = 0; i < 1e6; i++) h.append("x-" + (i % 1000), "v" + i); return new Response("ok", { headers: h }); } };
