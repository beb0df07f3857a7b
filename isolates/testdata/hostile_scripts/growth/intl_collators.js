// Intl.Collator, PluralRules and NumberFormat, kept
// outcome: cpu, memory

export default { fetch() { const a = []; for (let i = 0; ; i++) a.push(new Intl.Collator("de", { sensitivity: "base" }), new Intl.PluralRules("ar"), new Intl.NumberFormat("hi", { style: "currency", currency: "INR" })); } };
