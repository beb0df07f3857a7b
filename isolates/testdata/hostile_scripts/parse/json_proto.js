// JSON with __proto__ in it
// outcome: ok

export default { fetch() { const o = JSON.parse(`{"__proto__":{"a":1},"constructor":{"prototype":{"b":2}}}`); structuredClone(o); console.log(o); return new Response({}.a === undefined && {}.b === undefined ? "ok" : "polluted"); } };
