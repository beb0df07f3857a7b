// digests without end
// outcome: cpu, memory

export default { async fetch() { const b = new Uint8Array(16), all = []; for (;;) all.push(crypto.subtle.digest("SHA-1", b)); } };
