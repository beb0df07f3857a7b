// Error.prototype with getters for name and message
// outcome: exception

export default { fetch() { for (const k of ["name", "message", "stack", "cause", "toString"]) Object.defineProperty(Error.prototype, k, { get() { for (;;); } }); null.x; } };
