// Uint8Array.from of endless items
// outcome: cpu, memory

export default { fetch() { Uint8Array.from((function* () { for (;;) yield 1; })()); } };
