// decompression of a bomb, if there is any
// outcome: ok

export default { async fetch() { if (typeof CompressionStream === "undefined") return new Response("ok"); const c = new Response(new ReadableStream({ start(k) { for (let i = 0; i < 64; i++) k.enqueue(new Uint8Array(1 << 20)); k.close(); } }).pipeThrough(new CompressionStream("gzip"))); const b = await c.arrayBuffer(); await new Response(new Response(b).body.pipeThrough(new DecompressionStream("gzip"))).arrayBuffer(); return new Response("ok"); } };
