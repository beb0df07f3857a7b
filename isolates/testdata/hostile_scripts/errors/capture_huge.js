// captureStackTrace on a proxy and on frozen things
// outcome: ok

export default { fetch() { for (const o of [new Proxy({}, { defineProperty() { throw 1; } }), Object.freeze({}), new Proxy({}, {})]) try { Error.captureStackTrace(o); } catch {} return new Response("ok"); } };
