// normalize("NFKD") of a character that becomes 18
// outcome: memory, cpu, exception, ok

export default { fetch() { "\ufdfa".repeat(2 ** 24).normalize("NFKD"); return new Response("ok"); } };
