// join of a million objects with toString
// outcome: cpu, memory

export default { fetch() { return new Response(new Array(1e6).fill({ toString() { let s = 0; for (let i = 0; i < 1e4; i++) s += i; return "" + s; } }).join()); } };
