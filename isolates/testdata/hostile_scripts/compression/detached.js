// chunks that are transferred away once they are written
// outcome: ok

export default { async fetch() { const c = new CompressionStream("gzip"), w = c.writable.getWriter(), u = new Uint8Array(1 << 16); const p = w.write(u); u.buffer.transfer(); w.close().catch(() => {}); try { await new Response(c.readable).arrayBuffer(); await p; } catch {} return new Response("ok"); } };
