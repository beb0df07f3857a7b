// call, apply, bind and Symbol.hasInstance of functions replaced
// outcome: ok
// events: 2

export default { fetch() { for (const k of ["call", "apply", "bind", "toString"]) Function.prototype[k] = () => { throw new Error("mine"); }; return new Response("ok"); } };
