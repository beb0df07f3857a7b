// reportError of a hundred thousand hostile things
// outcome: cpu

export default { fetch() { for (let i = 0; i < 1e5; i++) reportError(new Proxy({}, { get() { throw i; } })); return new Response("ok"); } };
