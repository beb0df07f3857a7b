// a memory of WebAssembly that grows and is filled
// outcome: exception, cpu

export default { fetch() { const m = new WebAssembly.Memory({ initial: 0 }); for (let n = 0;; n += 65536) { m.grow(1); new Uint8Array(m.buffer, n).fill(1); } } };
