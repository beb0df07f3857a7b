// headers by a proxy with endless keys
// outcome: cpu, exception, memory

export default { fetch() { return new Response("x", { headers: new Proxy({}, { ownKeys() { const a = []; for (let i = 0;; i++) a.push("k" + i); } }) }); } };
