// a million search parameters
// outcome: cpu, memory

export default { fetch() { const p = new URLSearchParams("a=b&".repeat(1e6)); for (let i = 0; i < 1e5; i++) p.append("k" + i, "v"); p.sort(); for (let i = 0; i < 1e5; i++) p.delete("k" + i); return new Response(p.toString().slice(0, 1)); } };
