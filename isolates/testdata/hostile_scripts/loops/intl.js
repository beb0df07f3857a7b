// Intl formats without end, none kept
// outcome: cpu, memory

export default { fetch() { for (;;) new Intl.DateTimeFormat("ja", { dateStyle: "full", timeStyle: "full" }).format(0); } };
