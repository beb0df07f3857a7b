// one chain of then() without end
// outcome: cpu, memory

export default { fetch() { let p = Promise.resolve(); for (;;) p = p.then(() => new Array(100)); } };
