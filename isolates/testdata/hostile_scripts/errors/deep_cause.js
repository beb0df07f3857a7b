// a hundred thousand causes
// outcome: exception, cpu, memory

export default { fetch() { let e = new Error("0"); for (let i = 0; i < 1e4; i++) e = new Error("x" + i, { cause: e }); console.error(e); throw e; } };
