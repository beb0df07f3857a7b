// long operations left behind by each event
// outcome: ok
// events: 20

const key = await crypto.subtle.importKey("raw", new Uint8Array(8), "PBKDF2", false, ["deriveBits"]);
export default { fetch() {
  for (let i = 0; i < 20; i++) crypto.subtle.deriveBits({ name: "PBKDF2", hash: "SHA-512", salt: new Uint8Array(8), iterations: 1e7 }, key, 512).then(() => { for (;;); });
  return new Response("ok");
} };
