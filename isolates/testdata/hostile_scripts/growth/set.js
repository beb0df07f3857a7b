// a Set of objects
// outcome: cpu, memory

export default { fetch() { const s = new Set(); for (;;) s.add({}); } };
