// one chain of then() without end
// outcome: memory, cpu

export default { fetch() { let p = Promise.resolve(); for (;;) p = p.then(() => new Array(100)); } };
