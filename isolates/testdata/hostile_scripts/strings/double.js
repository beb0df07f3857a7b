// s += s
// outcome: exception, memory, cpu

export default { fetch() { let s = "ab"; for (;;) s += s; } };
