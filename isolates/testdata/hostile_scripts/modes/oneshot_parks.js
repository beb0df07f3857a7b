// a match of 2**27 in mode oneshot
// outcome: memory, cpu
// mode: oneshot
// parks

export default { fetch() { "a".repeat(2 ** 27).match(/a/g); return new Response("ok"); } };
