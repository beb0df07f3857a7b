// a Set of objects
// outcome: memory, cpu

export default { fetch() { const s = new Set(); for (;;) s.add({}); } };
