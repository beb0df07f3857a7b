// an async iterator without end
// outcome: cpu, memory

export default { async fetch() { for await (const x of { [Symbol.asyncIterator]: () => ({ next: async () => ({ value: 1, done: false }) }) }) void x; } };
