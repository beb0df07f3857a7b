// a thousand operations that nobody waits for
// outcome: ok, cpu

export default { fetch() { for (let i = 0; i < 1000; i++) crypto.subtle.digest("SHA-256", new Uint8Array(1 << 16)); return new Response("ok"); } };
