// then on Object.prototype
// outcome: exception
// events: 2

export default { async fetch() { Object.prototype.then = function (f) { f(1); }; return new Response("ok"); } };
