// toJSON that never returns
// outcome: cpu

export default { fetch() { return new Response(JSON.stringify({ toJSON() { for (;;); } })); } };
