// small typed arrays, whose memory is in the heap
// outcome: cpu, exception, memory

export default { fetch() { const a = []; for (;;) a.push(new Uint8Array(32)); } };
