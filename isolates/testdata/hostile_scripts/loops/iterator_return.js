// an iterator whose return never returns
// outcome: cpu

export default { fetch() { for (const x of { [Symbol.iterator]: () => ({ next: () => ({ value: 1 }), return() { for (;;); } }) }) break; } };
