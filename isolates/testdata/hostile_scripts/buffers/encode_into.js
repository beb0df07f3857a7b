// encodeInto of a huge string, again and again
// outcome: cpu, ok, exception, memory

export default { fetch() { const e = new TextEncoder(), b = new Uint8Array(32 << 20), s = "€".repeat(1 << 23); for (let i = 0; i < 20; i++) e.encodeInto(s, b); return new Response("ok"); } };
