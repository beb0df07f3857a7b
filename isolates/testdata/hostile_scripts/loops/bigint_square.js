// a BigInt squared until the end
// outcome: exception, memory, cpu

export default { fetch() { let x = 3n; for (;;) x = x * x; } };
