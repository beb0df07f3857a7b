// a stream of single bytes without end
// outcome: cpu, memory, exception

export default { fetch() { return new Response(new ReadableStream({ pull(c) { c.enqueue(new Uint8Array(1)); } })); } };
