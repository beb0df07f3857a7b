// an object literal of 200,000 keys
// outcome: ok, cpu
// load
// many: 200000 k$i:$i,

const o = {__MANY__};
export default { fetch() { return new Response(o.k7 === 7 ? "ok" : "no"); } };
