// one object with ever more properties
// outcome: memory, cpu

export default { fetch() { const o = {}; for (let i = 0;; i++) o["key" + i] = i; } };
