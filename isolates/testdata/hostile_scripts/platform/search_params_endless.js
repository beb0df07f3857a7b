// URLSearchParams of endless pairs
// outcome: cpu, memory

export default { fetch() { new URLSearchParams((function* () { for (;;) yield ["a", "b"]; })()); } };
