// structuredClone of maps in themselves, deep
// outcome: exception, cpu

export default { fetch() { let m = new Map(); for (let i = 0; i < 1e5; i++) { const n = new Map([[m, m]]); n.set("self", n); m = n; } structuredClone(m); return new Response("ok"); } };
