// alternatives that overlap, nested in each other
// outcome: cpu

export default { fetch() { return new Response(String(/^((a|a)*|(a|aa)+)*c$/.test("a".repeat(200)))); } };
