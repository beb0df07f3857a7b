// text streams around each other, without end
// outcome: cpu, memory, timeout

export default { async fetch() { const s = new ReadableStream({ pull(c) { c.enqueue("ä".repeat(1 << 14)); } }).pipeThrough(new TextEncoderStream()).pipeThrough(new TextDecoderStream()); for await (const c of s); return new Response("ok"); } };
