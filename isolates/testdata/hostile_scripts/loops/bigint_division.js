// division and decimal digits of large BigInts
// outcome: cpu, exception, memory

export default { fetch() { const x = (1n << 8000000n) - 1n; for (;;) { x / ((1n << 4000000n) + 1n); x.toString(10); } } };
