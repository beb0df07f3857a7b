// a set-like thing whose size loops
// outcome: cpu, memory

export default { fetch() { new Set([1]).isSubsetOf({ get size() { for (;;); } }); } };
