// Intl.Segmenter of 16 MB
// outcome: cpu, memory
// strays

export default { fetch() { let n = 0; for (const s of new Intl.Segmenter("th", { granularity: "word" }).segment("ก".repeat(1 << 23))) n++; return new Response("ok"); } };
