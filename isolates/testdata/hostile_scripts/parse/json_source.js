// a reviver that reads the source of a million values
// outcome: cpu, memory

export default { fetch() { const s = "[" + "1,".repeat(1e6) + "1]"; JSON.parse(s, (k, v, c) => c?.source ?? v); return new Response("ok"); } };
