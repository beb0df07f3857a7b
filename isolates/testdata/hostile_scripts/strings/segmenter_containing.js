// containing of Intl.Segmenter, far into 16 MB
// outcome: cpu, memory
// strays

export default { fetch() { const s = new Intl.Segmenter("th", { granularity: "word" }).segment("ก".repeat(1 << 23)); s.containing(1 << 22); return new Response("ok"); } };
