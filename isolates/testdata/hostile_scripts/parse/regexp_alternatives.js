// an alternation of a hundred thousand
// outcome: ok, cpu, exception, memory

export default { fetch() { const r = new RegExp(Array.from({ length: 1e5 }, (_, i) => "k" + i).join("|"), "iu"); r.test("k".repeat(1e5)); return new Response("ok"); } };
