// views that track a buffer that shrinks under them
// outcome: ok

export default { fetch() { const b = new ArrayBuffer(1 << 16, { maxByteLength: 1 << 20 }); const v = new Uint8Array(b), d = new DataView(b, 8); b.resize(0); try { d.getInt8(0); } catch {} v.fill(1); v.set([]); console.log(v, b); structuredClone(b); return new Response("ok"); } };
