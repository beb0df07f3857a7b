// a start function that never ends
// outcome: cpu

const section = (id, c) => { const n = c.length; return [id, n & 127 | 128, n >> 7 & 127 | 128, n >> 14 & 127, ...c]; };
const head = [0, 97, 115, 109, 1, 0, 0, 0];
const m = new Uint8Array([...head, ...section(1, [1, 96, 0, 0]), ...section(3, [1, 0]), ...section(8, [0]), ...section(10, [1, 7, 0, 3, 64, 12, 0, 11, 11])]);
export default { async fetch() { await WebAssembly.instantiate(m); return new Response("had it"); } };
