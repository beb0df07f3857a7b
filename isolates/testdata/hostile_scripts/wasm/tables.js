// tables of WebAssembly
// outcome: memory, cpu, exception

export default { fetch() { const a = []; for (;;) a.push(new WebAssembly.Table({ element: "anyfunc", initial: 1e6 })); } };
