// a thrown Proxy that traps everything
// outcome: exception

export default { fetch() { throw new Proxy(function () {}, new Proxy({}, { get() { throw new Error("trap"); } })); } };
