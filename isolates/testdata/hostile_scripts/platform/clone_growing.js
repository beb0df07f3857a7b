// structuredClone of an array that grows while it is read
// outcome: cpu, memory, exception

export default { fetch() { const a = []; a.push({ get x() { for (let i = 0; i < 1000; i++) a.push({ get y() { a.push([1, 2, 3]); return a; } }); return a; } }); for (;;) structuredClone(a); } };
