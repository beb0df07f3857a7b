// JSON.stringify of a graph that doubles at each level
// outcome: cpu, memory, exception

export default { fetch() { let o = { x: "xxxxxxxxxx" }; for (let i = 0; i < 40; i++) o = { a: o, b: o }; return new Response(JSON.stringify(o)); } };
