// a bomb of zeros, decompressed to the end
// outcome: cpu, ok

const c = new CompressionStream("deflate-raw");
const writer = c.writable.getWriter();
const packed = new Response(c.readable).arrayBuffer();
const zeros = new Uint8Array(1 << 20);
for (let i = 0; i < 64; i++) await writer.write(zeros);
await writer.close();
const bomb = await packed;
export default { async fetch() {
  for (;;) {
    const d = new DecompressionStream("deflate-raw");
    const w = d.writable.getWriter();
    w.write(bomb).then(() => w.close());
    for await (const chunk of d.readable) if (chunk.length > 65536) return new Response("large");
  }
} };
