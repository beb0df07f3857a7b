// getters on Error.prototype that never return
// outcome: exception

export default { fetch() { for (const k of ["name", "message", "toString"]) Object.defineProperty(Error.prototype, k, { get() { for (;;); } }); throw new Error("x"); } };
