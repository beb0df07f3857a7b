// setters that set themselves
// outcome: exception

export default { fetch() { const o = { set a(v) { this.a = v; } }; o.a = 1; return new Response("ok"); } };
