// fetch of a URL of 32 MB
// outcome: cpu, memory

export default { async fetch() { try { await fetch("http://x.test/" + "%41".repeat(1 << 23)); } catch {} return new Response("ok"); } };
