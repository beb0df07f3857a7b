// an interval that throws
// outcome: timeout, cpu

export default { fetch() { return new Promise(() => setInterval(() => { throw new Error("tick " + "x".repeat(1e5)); }, 1)); } };
