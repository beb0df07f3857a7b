// an array that grows for ever
// outcome: memory, cpu

export default { fetch() { const a = []; for (;;) a.push(new Array(1e4).fill(1.5)); } };
