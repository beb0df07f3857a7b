// a match of 2**27 in mode persistent
// outcome: memory, cpu
// mode: persistent
// parks

export default { fetch() { "a".repeat(2 ** 27).match(/a/g); return new Response("ok"); } };
