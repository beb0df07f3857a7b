// bombs of which every piece is kept
// outcome: memory, cpu, exception

export default { async fetch() {
  const c = new CompressionStream("gzip");
  const writer = c.writable.getWriter();
  const packed = new Response(c.readable).arrayBuffer();
  const zeros = new Uint8Array(1 << 20);
  for (let i = 0; i < 16; i++) await writer.write(zeros);
  await writer.close();
  const bomb = await packed;
  const kept = [];
  for (;;) {
    const d = new DecompressionStream("gzip");
    const w = d.writable.getWriter();
    w.write(bomb).then(() => w.close()).catch(() => {});
    for await (const chunk of d.readable) kept.push(chunk);
  }
} };
