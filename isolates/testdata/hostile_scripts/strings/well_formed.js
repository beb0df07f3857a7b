// toWellFormed of 2**28 lone surrogates
// outcome: cpu, memory, exception, ok
// strays

export default { fetch() { "\ud800".repeat(2 ** 27).toWellFormed(); return new Response("ok"); } };
