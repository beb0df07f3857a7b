// Headers of endless pairs
// outcome: cpu, memory

export default { fetch() { new Headers({ *[Symbol.iterator]() { for (;;) yield ["a", "b"]; } }); } };
