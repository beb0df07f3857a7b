// Error.prepareStackTrace that never returns
// outcome: cpu

export default { fetch() { Error.prepareStackTrace = () => { for (;;); }; throw new Error("x"); } };
