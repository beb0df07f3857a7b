// RSA keys of every size
// outcome: ok, cpu

export default { async fetch() {
  for (const modulusLength of [0, 1, 1024, 4096, 8192, 16384, 2 ** 32 - 1]) {
    await crypto.subtle.generateKey({ name: "RSA-PSS", modulusLength, publicExponent: new Uint8Array([1, 0, 1]), hash: "SHA-1" }, true, ["sign"]).catch(() => {});
  }
  return new Response("ok");
} };
