// TextEncoder of ever longer text
// outcome: exception, memory, cpu

export default { fetch() { const e = new TextEncoder(), a = []; for (let i = 1;; i *= 2) a.push(e.encode("€".repeat(i))); } };
