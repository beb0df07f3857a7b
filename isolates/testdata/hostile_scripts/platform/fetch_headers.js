// fetch with 64 MB of headers
// outcome: memory, cpu

export default { async fetch() { try { await fetch("http://x.test/", { headers: { a: "v".repeat(1 << 26) } }); } catch {} return new Response("ok"); } };
