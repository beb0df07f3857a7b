// symbols with long descriptions
// outcome: cpu, memory

export default { fetch() { const a = []; for (let i = 0;; i++) a.push(Symbol("s".repeat(100) + i)); } };
