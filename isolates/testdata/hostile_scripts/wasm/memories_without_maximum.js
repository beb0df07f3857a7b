// memories of WebAssembly that may grow to all that there is
// outcome: exception, cpu

export default { fetch() { const a = []; for (;;) a.push(new WebAssembly.Memory({ initial: 1 })); } };
