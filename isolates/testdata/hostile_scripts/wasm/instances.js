// instances of an empty module
// outcome: memory, cpu, exception

const section = (id, c) => { const n = c.length; return [id, n & 127 | 128, n >> 7 & 127 | 128, n >> 14 & 127, ...c]; };
const head = [0, 97, 115, 109, 1, 0, 0, 0];
const m = new WebAssembly.Module(new Uint8Array(head));
export default { fetch() { const a = []; for (;;) a.push(new WebAssembly.Instance(m)); } };
