// ten thousand PBKDF2 at once
// outcome: exception, cpu

export default { async fetch() { const text = new TextEncoder(); const k = await crypto.subtle.importKey("raw", text.encode("x"), "PBKDF2", false, ["deriveBits"]); await Promise.all(Array.from({ length: 1e4 }, () => crypto.subtle.deriveBits({ name: "PBKDF2", hash: "SHA-256", salt: text.encode("s"), iterations: 1e5 }, k, 256))); return new Response("ok"); } };
