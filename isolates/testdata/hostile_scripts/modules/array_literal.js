// an array literal of a million numbers
// outcome: ok, cpu
// load
// many: 1000000 $i,

const a = [__MANY__];
export default { fetch() { return new Response(a.length === 1000000 ? "ok" : "no"); } };
