// globals of WebAssembly
// outcome: memory, cpu, exception

export default { fetch() { const a = []; for (;;) a.push(new WebAssembly.Global({ value: "i64", mutable: true }, 1n)); } };
