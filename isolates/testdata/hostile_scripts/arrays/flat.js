// flat(Infinity) of an array in itself
// outcome: exception

export default { fetch() { const a = []; a.push(a, a); return new Response(String(a.flat(Infinity).length)); } };
