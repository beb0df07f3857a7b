// a stack of 256 MB
// outcome: exception, memory, cpu

export default { fetch() { const e = new Error("x"); e.stack = "    at x (y:1:1)\n".repeat(2 ** 24); throw e; } };
