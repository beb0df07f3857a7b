// Promise.prototype.then replaced
// outcome: ok
// events: 2

export default { async fetch() { Promise.prototype.then = function () { throw new Error("mine"); }; Promise.resolve = Promise.reject = () => { throw new Error("mine"); }; return new Response("ok"); } };
