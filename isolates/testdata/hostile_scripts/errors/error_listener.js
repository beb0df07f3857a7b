// an error listener that throws
// outcome: cpu, exception, ok

addEventListener("error", (e) => { throw e.error; });
export default { fetch() { reportError(new Error("x")); return new Response("ok"); } };
