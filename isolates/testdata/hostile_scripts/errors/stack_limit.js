// Error.stackTraceLimit = Infinity at the end of the stack
// outcome: exception

export default { fetch() { Error.stackTraceLimit = Infinity; const f = () => f(); f(); } };
