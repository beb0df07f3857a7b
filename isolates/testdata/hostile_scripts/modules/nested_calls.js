// a chain of 100,000 additions
// outcome: ok
// many: 100000 +1

const a = 0__MANY__;
export default { fetch() { return new Response("ok"); } };
