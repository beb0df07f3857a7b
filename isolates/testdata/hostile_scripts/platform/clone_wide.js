// structuredClone of a million small things
// outcome: cpu, memory, exception

export default { fetch() { const a = Array.from({ length: 1e5 }, (_, i) => ({ i, m: new Map([[i, new Set([i])]]) })); for (;;) structuredClone(a); } };
