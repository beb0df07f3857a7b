// toJSON that stringifies itself
// outcome: exception

export default { fetch() { const o = { toJSON() { return JSON.stringify(o); } }; return new Response(JSON.stringify(o)); } };
