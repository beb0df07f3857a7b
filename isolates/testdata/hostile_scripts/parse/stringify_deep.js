// JSON.stringify of a chain of a million objects
// outcome: exception

export default { fetch() { let o = {}; for (let i = 0; i < 1e5; i++) o = { o }; return new Response(JSON.stringify(o)); } };
