// an RSA key with a public exponent of 4 KB
// outcome: exception

export default { async fetch() { await crypto.subtle.generateKey({ name: "RSASSA-PKCS1-v1_5", modulusLength: 2048, publicExponent: new Uint8Array(4096).fill(255), hash: "SHA-256" }, true, ["sign", "verify"]); return new Response("ok"); } };
