// a transform that doubles each chunk
// outcome: cpu, memory

export default { fetch() { let s = new ReadableStream({ start(c) { c.enqueue("x"); c.close(); } }); for (let i = 0; i < 40; i++) s = s.pipeThrough(new TransformStream({ transform(x, c) { c.enqueue(x); c.enqueue(x); } })); return new Response(s.pipeThrough(new TransformStream({ transform(x, c) { c.enqueue(new TextEncoder().encode(x)); } }))); } };
