// Map.groupBy of endless items
// outcome: cpu, memory

export default { fetch() { Map.groupBy((function* () { for (let i = 0; ; i++) yield i; })(), (i) => i); } };
