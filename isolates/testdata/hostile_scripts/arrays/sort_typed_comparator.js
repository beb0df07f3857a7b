// a typed array sorted by a comparator for ever
// outcome: cpu

export default { fetch() { new Float64Array(1e5).fill(1).sort(() => { for (;;); }); } };
