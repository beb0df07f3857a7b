// Headers objects
// outcome: cpu, memory

export default { fetch() { const a = []; for (let i = 0;; i++) a.push(new Headers({ ["x-" + i]: "v".repeat(100) })); } };
