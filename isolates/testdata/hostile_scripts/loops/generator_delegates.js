// generators that delegate to each other
// outcome: exception

export default { fetch() { function* g() { yield* g(); } for (const x of g()); } };
