// Response.prototype's getters replaced before the reply
// outcome: ok

export default { fetch() { const r = new Response("ok"); for (const k of ["status", "headers", "body", "bodyUsed"]) Object.defineProperty(Response.prototype, k, { get() { throw new Error(k); } }); return r; } };
