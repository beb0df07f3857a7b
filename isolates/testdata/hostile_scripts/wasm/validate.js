// modules that are looked at for ever
// outcome: cpu

const section = (id, c) => { const n = c.length; return [id, n & 127 | 128, n >> 7 & 127 | 128, n >> 14 & 127, ...c]; };
const head = [0, 97, 115, 109, 1, 0, 0, 0];
const m = new Uint8Array([...head, ...section(0, Array(100000).fill(1))]);
export default { fetch() { for (let i = 0;; i = i + 1 & 255) { m[5000] = i; WebAssembly.validate(m); } } };
