// errors, each with its stack
// outcome: memory, cpu

export default { fetch() { const a = []; for (let i = 0;; i++) a.push(new Error("e" + i)); } };
