// TextEncoder of ever longer text
// outcome: exception, cpu, memory

export default { fetch() { const e = new TextEncoder(), a = []; for (let i = 1;; i *= 2) a.push(e.encode("€".repeat(i))); } };
