// distinct strings kept in an array
// outcome: cpu, memory

export default { fetch() { const a = []; for (let i = 0;; i++) a.push("x".repeat(1000) + i); } };
