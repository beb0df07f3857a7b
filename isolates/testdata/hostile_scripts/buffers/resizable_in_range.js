// a resizable buffer that grows past the limit
// outcome: exception

export default { fetch() { const b = new ArrayBuffer(8, { maxByteLength: 2 ** 30 }); b.resize(2 ** 29); new Uint8Array(b).fill(1); return new Response("had it"); } };
