// suspended generators
// outcome: cpu, memory

export default { fetch() { function* g() { const a = new Array(100).fill(1); yield a; } const all = []; for (;;) { const it = g(); it.next(); all.push(it); } } };
