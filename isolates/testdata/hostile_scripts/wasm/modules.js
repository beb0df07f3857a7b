// modules that differ, until their code is too much
// outcome: exception, cpu, memory

const section = (id, c) => { const n = c.length; return [id, n & 127 | 128, n >> 7 & 127 | 128, n >> 14 & 127, ...c]; };
const head = [0, 97, 115, 109, 1, 0, 0, 0];
export default { fetch() { const a = []; for (let i = 0;; i++) a.push(new WebAssembly.Module(new Uint8Array([...head, ...section(0, [1, 120, i & 255, i >> 8 & 255, i >> 16])]))); } };
