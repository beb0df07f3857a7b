// a stream that fails after its first chunk
// outcome: exception

export default { fetch() { return new Response(new ReadableStream({ start(c) { c.enqueue(new Uint8Array(1)); }, pull() { throw new Error("stream"); } })); } };
