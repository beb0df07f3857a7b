// prepareStackTrace that makes an error whose stack it prepares
// outcome: ok

export default { fetch() { Error.prepareStackTrace = () => new Error("again").stack; return new Response(typeof new Error("x").stack === "string" ? "ok" : "no"); } };
