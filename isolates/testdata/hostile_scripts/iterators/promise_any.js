// Promise.any of endless thenables
// outcome: cpu, memory

export default { fetch() { return Promise.any((function* () { for (;;) yield { then() {} }; })()); } };
