// memories of WebAssembly made and dropped: the garbage collector keeps up
// outcome: ok, cpu

export default { fetch() { for (let i = 0; i < 200; i++) new Uint8Array(new WebAssembly.Memory({ initial: 32, maximum: 64 }).buffer).fill(1); return new Response("ok"); } };
