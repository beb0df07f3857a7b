// import.meta, filled
// outcome: cpu, memory

export default { fetch() { for (let i = 0; ; i++) import.meta["k" + i] = new Array(100).fill(i); } };
