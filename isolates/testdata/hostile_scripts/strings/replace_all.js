// replaceAll with a pattern that doubles the text
// outcome: cpu, memory, exception

export default { fetch() { let s = "a".repeat(1e6); for (;;) s = s.replaceAll("a", "$&$&"); } };
