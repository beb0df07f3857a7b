// errors, each with its stack
// outcome: cpu, memory

export default { fetch() { const a = []; for (let i = 0;; i++) a.push(new Error("e" + i)); } };
