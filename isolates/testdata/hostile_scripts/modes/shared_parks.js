// a match of 2**27 in mode shared
// outcome: memory, cpu
// mode: shared
// parks

export default { fetch() { "a".repeat(2 ** 27).match(/a/g); return new Response("ok"); } };
