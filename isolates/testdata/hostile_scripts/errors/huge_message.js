// a message of 256 MB
// outcome: cpu, memory, exception

export default { fetch() { throw new Error("m".repeat(2 ** 28)); } };
