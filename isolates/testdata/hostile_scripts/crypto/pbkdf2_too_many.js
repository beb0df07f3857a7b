// derivations that are refused
// outcome: ok, cpu

const key = await crypto.subtle.importKey("raw", new Uint8Array(8), "PBKDF2", false, ["deriveBits"]);
export default { async fetch() {
  for (const [iterations, length] of [[2 ** 32 - 1, 8], [2e7 + 1, 8], [2e7, 2 ** 32 - 8], [1, 2 ** 32 - 8]]) {
    await crypto.subtle.deriveBits({ name: "PBKDF2", hash: "SHA-1", salt: new Uint8Array(8), iterations }, key, length).then(() => { throw new Error("done"); }, () => {});
  }
  return new Response("ok");
} };
