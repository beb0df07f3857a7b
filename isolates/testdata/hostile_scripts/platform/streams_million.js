// a hundred thousand streams, piped
// outcome: cpu, memory

export default { fetch() { const a = []; for (let i = 0; i < 1e5; i++) a.push(new ReadableStream({ start(c) { c.enqueue(1); c.close(); } }).pipeThrough(new TransformStream())); return new Response("ok"); } };
