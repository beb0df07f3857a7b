// generators that delegate to each other
// outcome: cpu, exception, memory

export default { fetch() { function* g() { yield* g(); } for (const x of g()); } };
