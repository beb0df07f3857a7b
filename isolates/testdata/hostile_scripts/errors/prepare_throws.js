// Error.prepareStackTrace that throws, recursively
// outcome: exception

export default { fetch() { Error.prepareStackTrace = () => { throw new Error("again"); }; throw new Error("x"); } };
