// Intl objects, whose memory V8 does not count
// outcome: memory, cpu

export default { fetch() { const a = []; for (;;) a.push(new Intl.NumberFormat("de"), new Intl.DateTimeFormat("ar"), new Intl.Collator("sv")); } };
