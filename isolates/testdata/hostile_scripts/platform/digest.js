// digests of the largest buffer, which Go computes
// outcome: cpu, memory, exception

export default { async fetch() { const b = new Uint8Array(50 << 20); for (;;) await crypto.subtle.digest("SHA-512", b); } };
