// a thrown symbol
// outcome: exception

export default { fetch() { throw Symbol("s".repeat(1e6)); } };
