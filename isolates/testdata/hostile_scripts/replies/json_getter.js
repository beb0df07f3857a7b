// Response.json of getters without end
// outcome: exception

export default { fetch() { const o = () => ({ get a() { return o(); } }); return Response.json(o()); } };
