// localeCompare of huge strings
// outcome: cpu, memory, ok
// strays

export default { fetch() { const s = "aä".repeat(2 ** 23); for (let i = 0; i < 10; i++) s.localeCompare(s + i); return new Response("ok"); } };
