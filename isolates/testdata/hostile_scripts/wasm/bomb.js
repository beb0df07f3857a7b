// a function of many variables and branches, which would compile for seconds
// outcome: exception

const section = (id, c) => { const n = c.length; return [id, n & 127 | 128, n >> 7 & 127 | 128, n >> 14 & 127, ...c]; };
const head = [0, 97, 115, 109, 1, 0, 0, 0];
const body = [1, 0xd0, 0x86, 3, 127]; for (let i = 0; i < 5000; i++) body.push(3, 64, 65, 0, 13, 0, 11); body.push(11);
const m = new Uint8Array([...head, ...section(1, [1, 96, 0, 0]), ...section(3, [1, 0]), ...section(7, [1, 1, 102, 0, 0]), ...section(10, [1, body.length & 127 | 128, body.length >> 7 & 127 | 128, body.length >> 14, ...body])]);
export default { fetch() { new WebAssembly.Instance(new WebAssembly.Module(m)).exports.f(); return new Response("had it"); } };
