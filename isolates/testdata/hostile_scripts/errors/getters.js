// an Error whose name, message, stack and cause never return
// outcome: exception

export default { fetch() { const e = new Error("x"); for (const k of ["name", "message", "stack", "cause", "toString"]) Object.defineProperty(e, k, { get() { for (;;); } }); throw e; } };
