// a generator whose finally never ends
// outcome: cpu

export default { fetch() { function* g() { try { yield 1; } finally { for (;;) yield 2; } } for (const x of g()) { for (const y of g()) { for (;;); } } } };
