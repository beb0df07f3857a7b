// an AggregateError of a million errors
// outcome: cpu

export default { fetch() { throw new AggregateError(Array.from({ length: 1e5 }, (_, i) => new Error("e" + i)), "many"); } };
