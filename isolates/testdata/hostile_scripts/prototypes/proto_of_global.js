// globalThis given a Proxy as its prototype
// outcome: ok
// events: 2

export default { fetch() { try { Object.setPrototypeOf(globalThis, new Proxy({}, { get() { throw new Error("mine"); }, has() { throw new Error("mine"); } })); } catch {} return new Response("ok"); } };
