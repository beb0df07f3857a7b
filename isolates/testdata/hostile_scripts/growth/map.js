// a Map with a new entry per step
// outcome: cpu, memory

export default { fetch() { const m = new Map(); for (let i = 0;; i++) m.set(i, [i]); } };
