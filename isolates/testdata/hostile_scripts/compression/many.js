// a hundred thousand compression streams, kept
// outcome: cpu, memory, timeout

export default { fetch() { const a = []; for (let i = 0; i < 1e5; i++) a.push(new CompressionStream("gzip")); return new Response("ok"); } };
