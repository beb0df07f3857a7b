// console.table of a thousand rows and columns
// outcome: cpu, ok, memory

export default { fetch() { console.table(Array.from({ length: 1000 }, (_, i) => Object.fromEntries(Array.from({ length: 1000 }, (_, k) => ["c" + k, i])))); return new Response("ok"); } };
