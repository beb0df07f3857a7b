// in, through a proxy that is its own prototype
// outcome: exception

export default { fetch() { const p = new Proxy({}, { has(t, k) { return k in p; } }); return new Response(String("x" in p)); } };
