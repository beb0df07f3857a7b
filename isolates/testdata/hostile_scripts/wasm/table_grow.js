// tables of WebAssembly that grow
// outcome: memory, cpu, exception

export default { fetch() { const a = []; for (;;) { const t = new WebAssembly.Table({ element: "externref", initial: 0 }); a.push(t); for (let i = 0; i < 1000; i++) t.grow(1000, a); } } };
