// structuredClone of a chain of a million objects
// outcome: exception, cpu, memory

export default { fetch() { let o = {}; for (let i = 0; i < 1e5; i++) o = { o }; structuredClone(o); return new Response("ok"); } };
