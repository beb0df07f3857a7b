// an async function that awaits itself, deep
// outcome: cpu, memory

export default { async fetch() { const g = async (n) => { await null; return g(n + 1); }; return g(0); } };
