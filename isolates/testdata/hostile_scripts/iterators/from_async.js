// Array.fromAsync of an endless async generator
// outcome: cpu, memory

export default { async fetch() { await Array.fromAsync((async function* () { for (;;) yield new Array(100).fill(0); })()); } };
