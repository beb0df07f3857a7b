// a reviver that parses
// outcome: exception

export default { fetch() { const f = () => JSON.parse("[1]", f); f(); return new Response("ok"); } };
