// modules of much code that differ
// outcome: exception, cpu, memory

const section = (id, c) => { const n = c.length; return [id, n & 127 | 128, n >> 7 & 127 | 128, n >> 14 & 127, ...c]; };
const head = [0, 97, 115, 109, 1, 0, 0, 0];
const body = [0]; for (let i = 0; i < 6000; i++) body.push(32, 0, 32, 0, 109, 26); body.push(11);
const size = [body.length & 127 | 128, body.length >> 7 & 127 | 128, body.length >> 14];
const make = (i) => new Uint8Array([...head, ...section(1, [1, 96, 1, 127, 0]), ...section(3, [8, 0, 0, 0, 0, 0, 0, 0, 0]), ...section(7, [8, 0, 1, 2, 3, 4, 5, 6, 7].flatMap((n, k) => k ? [1, 96 + k, 0, k - 1] : [n])),
  ...section(10, [8, ...Array(8).fill([...size, ...body]).flat()]), ...section(0, [1, 120, i & 255, i >> 8])]);
export default { fetch() { const a = []; for (let i = 0;; i++) { const { exports } = new WebAssembly.Instance(new WebAssembly.Module(make(i))); a.push(exports); for (const f of Object.values(exports)) try { f(1); } catch {} } } };
