// an error listener that throws
// outcome: ok

addEventListener("error", (e) => { throw e.error; });
export default { fetch() { reportError(new Error("x")); return new Response("ok"); } };
