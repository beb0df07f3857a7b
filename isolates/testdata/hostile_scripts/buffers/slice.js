// slices of a buffer
// outcome: exception, cpu

export default { fetch() { const b = new ArrayBuffer(1 << 20), a = []; for (;;) a.push(b.slice(0)); } };
