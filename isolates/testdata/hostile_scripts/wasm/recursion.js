// a function of WebAssembly that calls itself
// outcome: exception

const section = (id, c) => { const n = c.length; return [id, n & 127 | 128, n >> 7 & 127 | 128, n >> 14 & 127, ...c]; };
const head = [0, 97, 115, 109, 1, 0, 0, 0];
const m = new Uint8Array([...head, ...section(1, [1, 96, 0, 0]), ...section(3, [1, 0]), ...section(7, [1, 1, 102, 0, 0]), ...section(10, [1, 4, 0, 16, 0, 11])]);
export default { fetch() { new WebAssembly.Instance(new WebAssembly.Module(m)).exports.f(); return new Response("had it"); } };
