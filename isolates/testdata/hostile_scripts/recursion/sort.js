// a comparator that sorts
// outcome: exception

export default { fetch() { const f = () => [2, 1].sort(f) && 0; return new Response(String(f())); } };
