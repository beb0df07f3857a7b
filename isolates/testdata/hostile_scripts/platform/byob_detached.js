// a byte stream whose buffer is transferred away while it is read
// outcome: ok

export default { async fetch() { const s = new ReadableStream({ type: "bytes", pull(c) { const v = c.byobRequest?.view; if (v) { v.buffer.transfer(); } c.enqueue(new Uint8Array(8)); c.close(); } }); try { await s.getReader({ mode: "byob" }).read(new Uint8Array(8)); } catch {} return new Response("ok"); } };
