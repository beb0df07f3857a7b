// structuredClone of a buffer, over and over
// outcome: exception, memory, cpu

export default { fetch() { const b = new Uint8Array(1 << 20), a = []; for (;;) a.push(structuredClone(b)); } };
