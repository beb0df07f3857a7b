// shared memory by way of WebAssembly
// outcome: ok

const section = (id, c) => { const n = c.length; return [id, n & 127 | 128, n >> 7 & 127 | 128, n >> 14 & 127, ...c]; };
const head = [0, 97, 115, 109, 1, 0, 0, 0];
const m = new Uint8Array([...head, ...section(5, [1, 3, 1, 2])]);
export default { fetch() {
  for (const make of [() => new WebAssembly.Memory({ initial: 1, maximum: 2, shared: true }), () => new WebAssembly.Module(m), () => Reflect.construct(WebAssembly.Memory, [{ initial: 1, maximum: 2, shared: 1 }]),
    () => new (Object.getPrototypeOf(new WebAssembly.Memory({ initial: 1 })).constructor)({ initial: 1, maximum: 2, shared: true })]) {
    try { make(); return new Response("had it"); } catch { /* refused */ }
  }
  return new Response("ok");
} };
