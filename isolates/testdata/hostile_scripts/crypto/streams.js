// compression streams without end
// outcome: cpu, memory, exception

export default { async fetch() {
  for (;;) {
    const s = new CompressionStream("gzip");
    s.readable.getReader().read().catch(() => {});
    await s.writable.getWriter().write(new Uint8Array(10)).catch(() => {});
  }
} };
