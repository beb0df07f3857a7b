// a chain of 100,000 question marks
// outcome: exception
// many: 100000 ?.a

const o = {}; const a = o__MANY__;
export default { fetch() { return new Response("ok"); } };
