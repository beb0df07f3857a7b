// resizable buffers made and dropped: the garbage collector keeps up
// outcome: ok

export default { fetch() { for (let i = 0; i < 200; i++) { const b = new ArrayBuffer(8, { maxByteLength: 1 << 22 }); b.resize(1 << 20); } return new Response("ok"); } };
