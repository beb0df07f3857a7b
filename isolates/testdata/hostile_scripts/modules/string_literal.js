// a string literal of 8 MB
// outcome: ok, cpu
// many: 8388608 x

const s = "__MANY__";
export default { fetch() { return new Response(s.length === 8388608 ? "ok" : "no"); } };
