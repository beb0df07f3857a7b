// a sort of a million with a random comparator
// outcome: cpu, memory

export default { fetch() { for (;;) Array.from({ length: 1e5 }, (_, i) => i).sort(() => Math.random() - 0.5); } };
