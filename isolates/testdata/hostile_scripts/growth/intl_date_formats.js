// Intl.DateTimeFormat of every kind, kept
// outcome: cpu, memory

export default { fetch() { const a = []; for (let i = 0; ; i++) a.push(new Intl.DateTimeFormat(["de", "ar", "th", "ja"][i % 4], { dateStyle: "full", timeStyle: "full", timeZone: "Asia/Tokyo" }).format(i * 1e9)); } };
