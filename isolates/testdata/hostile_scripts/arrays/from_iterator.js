// Array.from of an endless iterator
// outcome: cpu, memory

export default { fetch() { return new Response(String(Array.from({ [Symbol.iterator]: () => ({ next: () => ({ value: 1.5, done: false }) }) }).length)); } };
