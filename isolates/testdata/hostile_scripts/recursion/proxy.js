// a proxy that is its own prototype's trap
// outcome: exception

export default { fetch() { const p = new Proxy({}, { get(t, k, r) { return r[k]; } }); return p.x; } };
