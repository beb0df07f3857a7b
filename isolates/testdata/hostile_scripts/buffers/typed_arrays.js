// typed arrays, filled
// outcome: exception, cpu

export default { fetch() { const a = []; for (;;) a.push(new Uint8Array(4 << 20).fill(1)); } };
