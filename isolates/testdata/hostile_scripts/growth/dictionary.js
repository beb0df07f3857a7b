// one object with ever more properties
// outcome: cpu, memory

export default { fetch() { const o = {}; for (let i = 0;; i++) o["key" + i] = i; } };
