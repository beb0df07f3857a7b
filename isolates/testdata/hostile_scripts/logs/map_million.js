// a map of a million entries, logged
// outcome: ok, cpu

export default { fetch() { console.log(new Map(Array.from({ length: 3e5 }, (_, i) => [i, i]))); return new Response("ok"); } };
