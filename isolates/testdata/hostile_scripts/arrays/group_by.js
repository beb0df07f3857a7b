// Object.groupBy with a new group per element
// outcome: cpu, memory

export default { fetch() { let i = 0; Object.groupBy({ *[Symbol.iterator]() { for (;;) yield i++; } }, (x) => "g" + x); } };
