// String.raw with 2**31 segments
// outcome: cpu, memory, exception
// endless

export default { fetch() { return new Response(String.raw({ raw: { length: 2 ** 31 } })); } };
