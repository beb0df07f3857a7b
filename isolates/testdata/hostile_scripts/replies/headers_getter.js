// headers by getters that throw
// outcome: exception

export default { fetch() { return new Response("x", { headers: { get a() { throw new Error("getter"); } } }); } };
