// long operations without end, none awaited
// outcome: cpu, memory, exception

export default { fetch() { const data = new Uint8Array(2e5); for (;;) crypto.subtle.digest("SHA-512", data).catch(() => {}); } };
