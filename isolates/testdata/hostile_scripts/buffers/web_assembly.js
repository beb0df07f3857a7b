// WebAssembly is not there
// outcome: ok

export default { fetch() { try { new WebAssembly.Memory({ initial: 1, maximum: 65536 }); } catch (e) { if (e instanceof ReferenceError) return new Response("ok"); } return new Response("had it"); } };
