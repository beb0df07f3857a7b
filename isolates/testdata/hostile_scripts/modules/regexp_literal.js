// a regular expression of 2 MB
// outcome: cpu
// load
// strays
// many: 200000 (?:a$i)|

const e = /__MANY__/;
export default { fetch() { return new Response(e.test("x") ? "ok" : "ok"); } };
