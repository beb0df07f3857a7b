// exceptions of WebAssembly, with their stacks
// outcome: memory, cpu

export default { fetch() { const a = [], tag = new WebAssembly.Tag({ parameters: ["externref"] }); for (;;) a.push(new WebAssembly.Exception(tag, [a], { traceStack: true })); } };
