// JSON.parse of a number with 2**25 digits
// outcome: ok, cpu, memory

export default { fetch() { JSON.parse("1".repeat(2 ** 25)); return new Response("ok"); } };
