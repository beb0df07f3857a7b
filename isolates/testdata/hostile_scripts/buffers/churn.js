// a gigabyte of buffers, each dropped at once
// outcome: cpu, ok

export default { fetch() { for (let i = 0; i < 256; i++) new Uint8Array(4 << 20); return new Response("ok"); } };
