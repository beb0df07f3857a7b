// The buffers of small typed arrays, which V8 makes when they are asked for, where no ArrayBuffer has room any more
// outcome: ok, cpu

export default { async fetch() {
  const all = [];
  for (let size = 1 << 20; size > 64; size >>= 1) {
    try { for (;;) all.push(new ArrayBuffer(size)); } catch { /* there is no room for that size */ }
  }
  const kept = [];
  for (let i = 0; i < 10000; i++) kept.push(new Uint8Array(8).buffer);
  crypto.getRandomValues(new Uint8Array(16));
  return new Response(kept.length === 10000 ? "ok" : "fewer");
} };
