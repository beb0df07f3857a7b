// Intl segmenters over long text
// outcome: cpu, memory

export default { fetch() { const a = [], text = "ä b ".repeat(1e5); for (;;) a.push([...new Intl.Segmenter("th", { granularity: "word" }).segment(text)]); } };
