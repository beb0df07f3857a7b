// lastIndexOf at its quadratic worst
// outcome: ok

export default { fetch() { const s = "a".repeat(2 ** 17); for (let i = 0; i < 4; i++) s.lastIndexOf("b" + "a".repeat(2 ** 16)); return new Response("ok"); } };
