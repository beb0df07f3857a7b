// String.raw with 2**31 segments
// outcome: memory, cpu, exception

export default { fetch() { return new Response(String.raw({ raw: { length: 2 ** 31 } })); } };
