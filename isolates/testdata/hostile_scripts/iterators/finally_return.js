// a recursive finally that begins anew
// outcome: cpu, memory

export default { fetch() { const g = () => { try { for (;;); } finally { try { g(); } finally { return g(); } } }; g(); } };
