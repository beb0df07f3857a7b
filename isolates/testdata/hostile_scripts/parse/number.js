// Number() of 2**26 digits
// outcome: cpu, ok, memory

export default { fetch() { Number("9".repeat(2 ** 26)); parseFloat("1" + "0".repeat(2 ** 26)); return new Response("ok"); } };
