// a stream of 1 MB chunks without end
// outcome: exception, memory, cpu

export default { fetch() { return new Response(new ReadableStream({ pull(c) { c.enqueue(new Uint8Array(1 << 20)); } })); } };
