// a default export whose getter throws a proxy
// outcome: exception

export default { get fetch() { throw new Proxy({}, { get() { throw 1; } }); } };
