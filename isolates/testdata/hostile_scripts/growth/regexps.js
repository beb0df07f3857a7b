// regular expressions, compiled and run
// outcome: cpu, memory

export default { fetch() { const a = []; for (let i = 0;; i++) { const r = new RegExp("(a|b)*" + i + "{1,50}c?"); r.test("abc" + i); a.push(r); } } };
