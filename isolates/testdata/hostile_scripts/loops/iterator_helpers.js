// iterator helpers on an endless iterator
// outcome: cpu, memory

export default { fetch() { function* g() { for (;;) yield 1; } return new Response(String(g().map((x) => x).filter((x) => x < 0).drop(5).toArray())); } };
