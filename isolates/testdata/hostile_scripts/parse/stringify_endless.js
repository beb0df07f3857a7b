// toJSON that gives a deeper object each time
// outcome: exception

export default { fetch() { const f = () => ({ toJSON() { return { a: f() }; } }); return new Response(JSON.stringify(f())); } };
