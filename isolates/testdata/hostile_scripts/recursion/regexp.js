// a replace callback that replaces
// outcome: exception

export default { fetch() { const f = () => "a".replace(/a/, f); return new Response(f()); } };
