// a BigInt squared until the end
// outcome: cpu, exception, memory

export default { fetch() { let x = 3n; for (;;) x = x * x; } };
