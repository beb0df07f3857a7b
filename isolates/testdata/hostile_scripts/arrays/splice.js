// splice at the front of a large array
// outcome: cpu, memory

export default { fetch() { const a = new Array(1e6).fill(1.5); for (;;) a.splice(0, 1, 1, 2, 3); } };
