// a compressed body of 200 MB, kept whole
// outcome: cpu, exception

export default { async fetch() { const zip = async (format, stream) => new Uint8Array(await new Response(stream.pipeThrough(new CompressionStream(format))).arrayBuffer()); const zeros = (n) => new ReadableStream({ pull(c) { if (n-- > 0) c.enqueue(new Uint8Array(1 << 20)); else c.close(); } }); const b = await zip("gzip", zeros(200)); await new Response(new Blob([b]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer(); return new Response("ok"); } };
