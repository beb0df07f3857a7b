// a thrown string of 512 MB
// outcome: exception, memory, cpu

export default { fetch() { throw "s".repeat(2 ** 29 - 32); } };
