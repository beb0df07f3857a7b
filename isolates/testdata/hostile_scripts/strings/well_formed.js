// toWellFormed of 2**28 lone surrogates
// outcome: memory, cpu, exception, ok

export default { fetch() { "\ud800".repeat(2 ** 27).toWellFormed(); return new Response("ok"); } };
