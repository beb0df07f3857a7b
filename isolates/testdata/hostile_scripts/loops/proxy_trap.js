// a has trap that never returns
// outcome: cpu

export default { fetch() { return "x" in new Proxy({}, { has() { for (;;); } }); } };
