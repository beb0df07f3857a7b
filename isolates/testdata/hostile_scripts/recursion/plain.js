// a function that calls itself
// outcome: exception

export default { fetch() { const f = (n) => f(n + 1) + 1; return f(0); } };
