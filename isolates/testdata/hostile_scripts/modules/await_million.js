// a million promises at load
// outcome: memory, cpu
// load

await Promise.all(Array.from({ length: 1e6 }, async (_, i) => i));
export default { fetch() { return new Response("ok"); } };
