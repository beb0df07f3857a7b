// a message of 256 MB
// outcome: exception, memory, cpu

export default { fetch() { throw new Error("m".repeat(2 ** 28)); } };
