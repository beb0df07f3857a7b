// (a+)+$ on a long string
// outcome: cpu

export default { fetch() { return new Response(String(/^(a+)+$/.test("a".repeat(50) + "b"))); } };
