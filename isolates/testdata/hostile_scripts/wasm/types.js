// modules with many types, which V8 keeps until the process ends
// outcome: exception, cpu

const section = (id, c) => { const n = c.length; return [id, n & 127 | 128, n >> 7 & 127 | 128, n >> 14 & 127, ...c]; };
const head = [0, 97, 115, 109, 1, 0, 0, 0];
const make = (n) => { const types = []; for (let i = 0; i < 2000; i++) { const k = n * 2000 + i; types.push(96, 12); for (let b = 0; b < 12; b++) types.push(127 - (k >> b & 1)); types.push(0); } return new Uint8Array([...head, ...section(1, [0xd0, 0x0f, ...types])]); };
export default { fetch() { for (let n = 0;; n++) new WebAssembly.Module(make(n)); } };
