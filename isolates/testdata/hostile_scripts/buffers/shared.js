// SharedArrayBuffer is not there
// outcome: ok

export default { fetch() { try { new SharedArrayBuffer(8, { maxByteLength: 2 ** 32 }); } catch (e) { if (e instanceof ReferenceError) return new Response("ok"); } return new Response("had it"); } };
