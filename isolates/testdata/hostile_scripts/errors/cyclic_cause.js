// causes in a circle
// outcome: exception

export default { fetch() { const a = new Error("a"), b = new Error("b", { cause: a }); a.cause = b; throw new AggregateError([a, b, a], "c", { cause: b }); } };
