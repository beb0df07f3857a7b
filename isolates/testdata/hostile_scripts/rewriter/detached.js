// chunks that are transferred away while they are rewritten
// outcome: ok

export default { async fetch() { const u = new Uint8Array(1 << 20).fill(97); const page = new ReadableStream({ start(c) { c.enqueue(u); c.close(); } }); const reader = new HTMLRewriter().on("a", {}).transform(new Response(page)).body.getReader(); const p = reader.read(); try { u.buffer.transfer(); } catch {} try { await p; for (let r = await reader.read(); !r.done; r = await reader.read()); } catch {} return new Response("ok"); } };
