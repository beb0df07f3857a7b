// sort of the largest Float64Array
// outcome: exception

export default { fetch() { new Float64Array(7 << 20).map(Math.random).sort(); return new Response("ok"); } };
