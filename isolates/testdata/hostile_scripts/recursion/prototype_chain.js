// a property looked up through a long chain of prototypes
// outcome: cpu, ok, memory

export default { fetch() { let o = {}; for (let i = 0; i < 3e5; i++) o = Object.create(o); for (let i = 0; i < 1e4; i++) o["x" + i]; return new Response("ok"); } };
