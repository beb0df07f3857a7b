// Intl objects, whose memory V8 does not count
// outcome: cpu, memory

export default { fetch() { const a = []; for (;;) a.push(new Intl.NumberFormat("de"), new Intl.DateTimeFormat("ar"), new Intl.Collator("sv")); } };
