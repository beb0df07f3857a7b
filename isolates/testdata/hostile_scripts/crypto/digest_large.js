// digests of 60 MB, for ever
// outcome: cpu

export default { async fetch() { const b = new Uint8Array(30 << 20); for (;;) await crypto.subtle.digest("SHA-512", b); } };
