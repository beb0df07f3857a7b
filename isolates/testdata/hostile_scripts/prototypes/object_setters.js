// setters for every name of the runtime on Object.prototype
// outcome: ok
// events: 2

const { defineProperty } = Object, P = Object.prototype;
export default { fetch() { for (const k of ["id", "run", "over", "answered", "waiting", "kind", "status", "headers", "source", "stream", "used", "list", "flat", "next", "value", "done", "resolve", "reject", "promise", "state", "signal", "url", "method", "callback", "args", "delay"]) defineProperty(P, k, { __proto__: null, configurable: true, get() { return undefined; }, set() { throw new Error("set " + k); } }); return new Response("ok"); } };
