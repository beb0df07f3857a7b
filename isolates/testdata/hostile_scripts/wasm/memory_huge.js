// a memory of WebAssembly that begins larger than the limit
// outcome: exception

export default { fetch() { return new Response(new WebAssembly.Memory({ initial: 8192 }).buffer.byteLength); } };
