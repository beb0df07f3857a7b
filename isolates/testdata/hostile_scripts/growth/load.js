// growth while the module loads
// outcome: memory, cpu

const a = []; for (;;) a.push(new Array(1e4).fill(1.5));
