// resizable buffers, each below the limit
// outcome: exception, cpu

export default { fetch() { const a = []; for (let i = 0; i < 64; i++) { const b = new ArrayBuffer(8, { maxByteLength: 1 << 24 }); b.resize(1 << 24); new Uint8Array(b).fill(1); a.push(b); } return new Response("had it"); } };
