// Date objects
// outcome: cpu, memory

export default { fetch() { const a = []; for (let i = 0;; i++) a.push(new Date(i)); } };
