// labels that jump out of finally to the start
// outcome: cpu, memory

export default { fetch() { again: for (;;) { try { for (;;) { new Array(10); } } finally { continue again; } } } };
