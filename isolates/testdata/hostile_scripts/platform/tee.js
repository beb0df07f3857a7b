// an endless stream teed, one branch never read
// outcome: exception, cpu, memory

export default { async fetch() { const [a, b] = new ReadableStream({ pull(c) { c.enqueue(new Uint8Array(1 << 16)); } }).tee(); void b; for await (const x of a) void x; } };
