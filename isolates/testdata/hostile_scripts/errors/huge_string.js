// a thrown string of 512 MB
// outcome: cpu, exception, memory
// strays

export default { fetch() { throw "s".repeat(2 ** 29 - 32); } };
