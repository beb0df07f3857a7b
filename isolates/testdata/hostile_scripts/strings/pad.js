// padEnd and padStart to 2**29
// outcome: cpu, exception, memory

export default { fetch() { const a = []; for (let i = 0;; i++) a.push("x".padEnd(2 ** 29 - 30, "abc" + i)); } };
