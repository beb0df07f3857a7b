// Small buffers without end, where no other has room any more
// outcome: memory, cpu, exception

export default { fetch() {
  const all = [];
  for (let size = 1 << 20; size > 64; size >>= 1) {
    try { for (;;) all.push(new ArrayBuffer(size)); } catch { /* there is no room for that size */ }
  }
  for (;;) all.push(new Uint8Array(1).buffer);
} };
