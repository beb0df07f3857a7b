// a JWK of 16 MB
// outcome: ok, cpu

export default { async fetch() { try { await crypto.subtle.importKey("jwk", { kty: "oct", k: "A".repeat(1 << 24), alg: "HS256" }, { name: "HMAC", hash: "SHA-256" }, true, ["sign"]); } catch {} return new Response("ok"); } };
