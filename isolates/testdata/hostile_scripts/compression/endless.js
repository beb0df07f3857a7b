// compression without end
// outcome: cpu, memory, timeout

export default { async fetch() { const s = new ReadableStream({ pull(c) { c.enqueue(crypto.getRandomValues(new Uint8Array(1 << 16))); } }).pipeThrough(new CompressionStream("gzip")); for await (const c of s); return new Response("ok"); } };
