// Number() of 2**26 digits
// outcome: cpu, memory, ok

export default { fetch() { Number("9".repeat(2 ** 26)); parseFloat("1" + "0".repeat(2 ** 26)); return new Response("ok"); } };
