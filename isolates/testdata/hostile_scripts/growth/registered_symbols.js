// Symbol.for with a new key each time
// outcome: cpu, memory

export default { fetch() { for (let i = 0;; i++) Symbol.for("key" + i + "x".repeat(200)); } };
