// Date objects
// outcome: memory, cpu

export default { fetch() { const a = []; for (let i = 0;; i++) a.push(new Date(i)); } };
