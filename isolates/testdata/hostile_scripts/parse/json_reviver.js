// a reviver that grows what it walks
// outcome: cpu, memory

export default { fetch() { JSON.parse("[[]]", function (k, v) { if (Array.isArray(v)) for (;;) this[this.length] = [[]]; return v; }); } };
