// a million dynamic imports of nothing
// outcome: cpu, memory

export default { async fetch() { const all = []; for (let i = 0; i < 1e6; i++) all.push(import("./m" + i)); await Promise.allSettled(all); return new Response("ok"); } };
