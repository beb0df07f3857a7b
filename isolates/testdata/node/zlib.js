import { builtin } from "pinwheel:node";
const zlib = builtin("zlib");
const { promisify } = builtin("util");
const { Readable } = builtin("stream");
const { pipeline } = builtin("stream/promises");

const thrown = (f) => {
  try {
    return f();
  } catch (error) {
    return `${error.name} ${error.code}`;
  }
};
const text = (n) => {
  let out = "";
  for (let i = 0; out.length < n; i++) out += `line ${i * 7919 % 1000} of ${i % 13}\n`;
  return Buffer.from(out.slice(0, n));
};
const noise = (n) => {
  const out = Buffer.alloc(n);
  for (let i = 0, x = 1; i < n; i++) out[i] = (x = (x * 1103515245 + 12345) & 0x7fffffff) >> 16;
  return out;
};
const formats = [["gzip", "gunzip", "Gzip", "Gunzip"], ["deflate", "inflate", "Deflate", "Inflate"],
  ["deflateRaw", "inflateRaw", "DeflateRaw", "InflateRaw"], ["brotliCompress", "brotliDecompress", "BrotliCompress", "BrotliDecompress"]];

test("there and back, in each form", async () => {
  for (const [there, back, Compress, Decompress] of formats) {
    for (const data of [Buffer.alloc(0), text(5), text(16384), noise(16383), text(262144), noise(262145), text(700000)]) {
      const level = { level: data.length % 10 };
      const small = zlib[`${there}Sync`](data, level);
      assert.equal(Buffer.compare(zlib[`${back}Sync`](small), data), 0, `${there} ${data.length}`);
      assert.equal(Buffer.compare(await promisify(zlib[back])(small), data), 0, `${back} ${data.length}`);
      assert.equal(Buffer.compare(zlib[`${back}Sync`](await promisify(zlib[there])(data, level)), data), 0, `later ${there} ${data.length}`);
      const parts = [];
      const chunks = [];
      for (let at = 0; at < data.length; at += 30011) chunks.push(data.subarray(at, at + 30011));
      await pipeline(Readable.from(chunks), zlib[`create${Compress}`](level), zlib[`create${Decompress}`](), async (source) => {
        for await (const c of source) parts.push(c);
      });
      assert.equal(Buffer.compare(Buffer.concat(parts), data), 0, `stream ${there} ${data.length}`);
    }
  }
});

test("what the web has reads it", async () => {
  const data = text(300000);
  for (const [format, there] of [["gzip", "gzip"], ["deflate", "deflate"], ["deflate-raw", "deflateRaw"]]) {
    const stream = new Blob([zlib[`${there}Sync`](data)]).stream().pipeThrough(new DecompressionStream(format));
    assert.equal(Buffer.compare(Buffer.from(await new Response(stream).arrayBuffer()), data), 0, format);
    const small = Buffer.from(await new Response(new Blob([data]).stream().pipeThrough(new CompressionStream(format))).arrayBuffer());
    assert.equal(Buffer.compare(zlib[format === "gzip" ? "gunzipSync" : format === "deflate" ? "inflateSync" : "inflateRawSync"](small), data), 0, format);
  }
});

test("bombs end at a bound", async () => {
  const bomb = zlib.gzipSync(Buffer.alloc(8000000));
  assert.equal(thrown(() => zlib.gunzipSync(bomb, { maxOutputLength: 1000 })), "RangeError ERR_BUFFER_TOO_LARGE");
  assert.equal(await promisify(zlib.gunzip)(bomb, { maxOutputLength: 1000 }).catch((e) => e.code), "ERR_BUFFER_TOO_LARGE");
  assert.equal(zlib.gunzipSync(bomb).length, 8000000);
  const large = zlib.deflateRawSync(Buffer.alloc(4000000));
  let whole = Buffer.alloc(0);
  for (let i = 0; i < 20; i++) whole = Buffer.concat([whole, zlib.gzipSync(Buffer.alloc(4000000))]);
  // 80 MB are beyond the bound of bytes. On a slow machine they are beyond the bound of CPU time first.
  const refused = thrown(() => zlib.gunzipSync(whole));
  assert.equal(["RangeError ERR_BUFFER_TOO_LARGE", "Error ERR_OPERATION_FAILED"].includes(refused), true, refused);
  assert.equal(zlib.inflateRawSync(large).length, 4000000);
});

test("flush and wrong data", async () => {
  const gzip = zlib.createGzip();
  const got = [];
  gzip.on("data", (c) => got.push(c));
  gzip.write("hello ");
  await new Promise((ok) => gzip.flush(ok));
  assert.equal(zlib.gunzipSync(Buffer.concat(got), { finishFlush: zlib.constants.Z_SYNC_FLUSH }).toString(), "hello ");
  gzip.end("world");
  await new Promise((ok) => gzip.on("end", ok));
  assert.equal(zlib.gunzipSync(Buffer.concat(got)).toString(), "hello world");
  const cut = zlib.gzipSync("abcdefgh").subarray(0, -5);
  assert.equal(thrown(() => zlib.gunzipSync(cut)), "Error Z_BUF_ERROR");
  assert.equal(await promisify(zlib.gunzip)(cut).catch((e) => e.code), "Z_BUF_ERROR");
  assert.equal((await promisify(zlib.gunzip)(cut, { finishFlush: 2 })).toString(), "abcdefgh");
  assert.equal(thrown(() => zlib.inflateSync(Buffer.from("zzzz"))), "Error Z_DATA_ERROR");
  assert.equal(thrown(() => zlib.gunzipSync(Buffer.alloc(0))), "Error Z_BUF_ERROR");
  assert.equal(zlib.crc32("hello"), 907060870);
  assert.equal(zlib.unzipSync(zlib.gzipSync("a")).toString() + zlib.unzipSync(zlib.deflateSync("b")).toString(), "ab");
  assert.equal(zlib.Gzip() instanceof zlib.Gzip, true);
});

test("readers are closed, so many can follow", async () => {
  const small = zlib.gzipSync(text(100000));
  for (let i = 0; i < 40; i++) {
    const gunzip = zlib.createGunzip();
    gunzip.write(small.subarray(0, 50));
    await new Promise((ok) => setTimeout(ok));
    gunzip.destroy();
  }
  assert.equal((await promisify(zlib.gunzip)(small)).length, 100000);
});
