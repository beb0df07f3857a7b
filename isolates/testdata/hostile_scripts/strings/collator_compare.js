// Intl.Collator.compare of two strings of 16 MB
// outcome: ok, cpu

export default { fetch() { new Intl.Collator("ja", { sensitivity: "base", ignorePunctuation: true }).compare("あ".repeat(1 << 23), "あ".repeat(1 << 23) + "a"); return new Response("ok"); } };
