// RSA keys that are longer than any
// outcome: ok, cpu

export default { async fetch() {
  const alg = { name: "RSA-PSS", hash: "SHA-1" };
  for (const n of [1025, 2000, 1e5, 1e6]) {
    const text = "x".repeat(n);
    const jwk = { kty: "RSA", n: text, e: "AQAB", d: text, p: text, q: text, dp: text, dq: text, qi: text };
    await crypto.subtle.importKey("jwk", jwk, alg, true, ["sign"]).then(() => { throw new Error("taken"); }, () => {});
    await crypto.subtle.importKey("jwk", { kty: "RSA", n: text, e: text }, alg, true, ["verify"]).then(() => { throw new Error("taken"); }, () => {});
    await crypto.subtle.importKey("pkcs8", new Uint8Array(n).fill(48), alg, true, ["sign"]).catch(() => {});
  }
  return new Response("ok");
} };
