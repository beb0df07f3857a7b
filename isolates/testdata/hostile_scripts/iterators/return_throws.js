// an iterator whose return throws when it is killed
// outcome: cpu, memory

export default { fetch() { for (const x of { [Symbol.iterator]: () => ({ next: () => ({ value: 1, done: false }), return() { for (;;); } }) }) { for (;;); } } };
