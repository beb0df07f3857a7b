// PBKDF2 with four billion iterations
// outcome: exception

export default { async fetch() { const text = new TextEncoder(); const k = await crypto.subtle.importKey("raw", text.encode("x"), "PBKDF2", false, ["deriveBits"]); await crypto.subtle.deriveBits({ name: "PBKDF2", hash: "SHA-512", salt: text.encode("s"), iterations: 2 ** 32 - 1 }, k, 256); return new Response("ok"); } };
