// normalize("NFKD") of a character that becomes 18
// outcome: cpu, memory, exception, ok
// strays

export default { fetch() { "\ufdfa".repeat(2 ** 24).normalize("NFKD"); return new Response("ok"); } };
