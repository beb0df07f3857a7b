// RSA keys of 16384 bits by the hundred
// outcome: exception

export default { async fetch() { await Promise.all(Array.from({ length: 100 }, () => crypto.subtle.generateKey({ name: "RSA-PSS", modulusLength: 16384, publicExponent: new Uint8Array([1, 0, 1]), hash: "SHA-256" }, true, ["sign", "verify"]))); return new Response("ok"); } };
