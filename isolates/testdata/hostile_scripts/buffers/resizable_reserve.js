// address space reserved by resizable buffers that stay empty
// outcome: exception

export default { fetch() { const a = []; for (let i = 0; i < 1e5; i++) a.push(new ArrayBuffer(0, { maxByteLength: 1 << 30 })); return new Response("had it"); } };
