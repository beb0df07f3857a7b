// marks and measures without end
// outcome: cpu, memory

export default { fetch() { for (let i = 0; ; i++) { performance.mark("m" + i, { detail: new Array(100) }); performance.measure("n" + i); } } };
