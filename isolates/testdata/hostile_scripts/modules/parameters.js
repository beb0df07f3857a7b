// a function of 70,000 parameters
// outcome: exception, cpu
// many: 70000 a$i,

function g(__MANY__ z) { return 1; }
export default { fetch() { return new Response("ok"); } };
