// look-behind over a long string at each position
// outcome: ok

export default { fetch() { /(?<=^(a|a)*b.*)c/.test("a".repeat(30000) + "d"); return new Response("ok"); } };
