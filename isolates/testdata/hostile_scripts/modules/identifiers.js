// a name of 4 MB
// outcome: ok
// many: 4000000 b

const a__MANY__ = 1;
export default { fetch() { return new Response("ok"); } };
