// ArrayBuffers until there are no more
// outcome: exception, cpu

export default { fetch() { const a = []; for (;;) a.push(new ArrayBuffer(1 << 20)); } };
