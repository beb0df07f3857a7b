// derivations with as many iterations as there may be
// outcome: cpu

const key = await crypto.subtle.importKey("raw", new Uint8Array(8), "PBKDF2", false, ["deriveBits"]);
export default { async fetch() { for (;;) await crypto.subtle.deriveBits({ name: "PBKDF2", hash: "SHA-512", salt: key.usages.length ? new Uint8Array(8) : null, iterations: 2e7 }, key, 512); } };
