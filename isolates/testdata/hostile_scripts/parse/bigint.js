// BigInt() of a string of ten million digits
// outcome: cpu, memory, exception, ok

export default { fetch() { BigInt("9".repeat(1e7)); return new Response("ok"); } };
