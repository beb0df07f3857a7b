// indexOf at its quadratic worst
// outcome: ok, cpu

export default { fetch() { const s = "a".repeat(2 ** 22); s.indexOf("a".repeat(2 ** 21) + "b"); return new Response("ok"); } };
