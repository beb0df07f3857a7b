// data as large as the heap allows
// outcome: ok, memory, exception, cpu

export default { async fetch() {
  const data = new Uint8Array(60 << 20);
  const key = await crypto.subtle.generateKey({ name: "AES-GCM", length: 256 }, true, ["encrypt"]);
  await Promise.allSettled([1, 2, 3, 4].map(() => crypto.subtle.encrypt({ name: "AES-GCM", iv: new Uint8Array(12) }, key, data)));
  return new Response("ok");
} };
