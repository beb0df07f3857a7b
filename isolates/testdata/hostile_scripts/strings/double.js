// s += s
// outcome: exception

export default { fetch() { let s = "ab"; for (;;) s += s; } };
