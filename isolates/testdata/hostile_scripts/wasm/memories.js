// memories of WebAssembly with a maximum
// outcome: exception, cpu

export default { fetch() { const a = []; for (;;) a.push(new WebAssembly.Memory({ initial: 16, maximum: 32 })); } };
