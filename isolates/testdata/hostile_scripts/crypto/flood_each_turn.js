// as many long operations as there may be, again and again
// outcome: cpu, timeout

export default { async fetch() { const data = new Uint8Array(2e5); for (;;) await Promise.allSettled(Array.from({ length: 400 }, () => crypto.subtle.digest("SHA-512", data))); } };
