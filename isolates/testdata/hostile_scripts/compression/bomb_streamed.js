// a compressed body of 200 MB, read by the chunk
// outcome: cpu, exception

export default { async fetch() { const zip = async (format, stream) => new Uint8Array(await new Response(stream.pipeThrough(new CompressionStream(format))).arrayBuffer()); const zeros = (n) => new ReadableStream({ pull(c) { if (n-- > 0) c.enqueue(new Uint8Array(1 << 20)); else c.close(); } }); const b = await zip("deflate", zeros(200)); let n = 0; for await (const c of new Blob([b]).stream().pipeThrough(new DecompressionStream("deflate"))) n += c.length; return new Response(n === 200 << 20 ? "ok" : String(n)); } };
