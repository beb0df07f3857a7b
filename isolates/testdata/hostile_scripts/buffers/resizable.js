// a resizable buffer of up to 4 GB
// outcome: exception

export default { fetch() { const b = new ArrayBuffer(8, { maxByteLength: 2 ** 32 }); b.resize(2 ** 31); new Uint8Array(b).fill(1); return new Response("had it"); } };
