// CompressionStream and DecompressionStream.

const text = (s) => new TextEncoder().encode(s);
const b64 = (s) => Uint8Array.from(atob(s), (c) => c.charCodeAt(0));
const latin = (bytes) => new TextDecoder("latin1").decode(bytes); // strings are compared fast
const formats = ["deflate", "deflate-raw", "gzip"];

async function collect(readable) {
  const chunks = [];
  for await (const chunk of readable) {
    assert.equal(Object.getPrototypeOf(chunk), Uint8Array.prototype);
    chunks.push(chunk);
  }
  const out = new Uint8Array(chunks.reduce((n, c) => n + c.length, 0));
  let at = 0;
  for (const chunk of chunks) { out.set(chunk, at); at += chunk.length; }
  return out;
}

async function through(stream, ...chunks) {
  const writer = stream.writable.getWriter();
  const written = (async () => {
    for (const chunk of chunks) await writer.write(chunk);
    await writer.close();
  })();
  written.catch(() => {});
  const out = await collect(stream.readable);
  await written;
  return out;
}

const compress = (format, ...chunks) => through(new CompressionStream(format), ...chunks);
const decompress = (format, ...chunks) => through(new DecompressionStream(format), ...chunks);

// "expected output", by zlib.
const known = {
  deflate: "eJxLrShITS5JTVHILy0pKC0BADCtBiQ=",
  gzip: "H4sIAAAAAAACA0utKEhNLklNUcgvLSkoLQEAsAE5sw8AAAA=",
  "deflate-raw": "S60oSE0uSU1RyC8tKSgtAQA=",
};

test("interfaces", () => {
  for (const Class of [CompressionStream, DecompressionStream]) {
    assert.equal(Class.length, 1);
    assert.throws(() => new Class(), TypeError);
    assert.throws(() => Class("gzip"), TypeError);
    for (const bad of ["", "a", "GZIP", "gzip ", "br", null, undefined, 5, {}]) assert.throws(() => new Class(bad), TypeError, String(bad));
    assert.equal(Object.prototype.toString.call(new Class({ toString: () => "gzip" })), `[object ${Class.name}]`);
    for (const name of ["readable", "writable"]) {
      const d = Object.getOwnPropertyDescriptor(Class.prototype, name);
      assert.deepEqual([typeof d.get, d.set, d.enumerable, d.configurable, d.get.name], ["function", undefined, true, true, `get ${name}`]);
      assert.throws(() => Class.prototype[name], TypeError);
      for (const self of [undefined, 5, {}]) assert.throws(() => d.get.call(self), TypeError);
    }
    const stream = new Class("deflate");
    assert.ok(stream.readable instanceof ReadableStream && stream.writable instanceof WritableStream);
    assert.equal(stream.readable, stream.readable);
    assert.equal(stream.writable, stream.writable);
  }
  assert.throws(() => Object.getOwnPropertyDescriptor(CompressionStream.prototype, "readable").get.call(new DecompressionStream("gzip")), TypeError);
});

test("what zlib made is read", async () => {
  for (const format of formats) {
    assert.equal(new TextDecoder().decode(await decompress(format, b64(known[format]))), "expected output", format);
    const whole = b64(known[format]);
    for (let at = 0; at <= whole.length; at++) {
      assert.equal(new TextDecoder().decode(await decompress(format, whole.subarray(0, at), whole.subarray(at))), "expected output", `${format} ${at}`);
    }
    const single = [...whole].map((b) => new Uint8Array([b]));
    assert.equal(new TextDecoder().decode(await decompress(format, ...single)), "expected output", "a byte at a time");
  }
});

test("what is compressed is read again", async () => {
  const random = new Uint8Array(70000);
  crypto.getRandomValues(random.subarray(0, 65536));
  const inputs = [[], [text("")], [text("a")], [text("hello "), text(""), text("world")], [new Uint8Array(100)], [random], [new Uint8Array(1000000), random, text("end")], [text("abc".repeat(400000))]];
  for (const format of formats) {
    for (const chunks of inputs) {
      const all = new Uint8Array(await new Blob(chunks).arrayBuffer());
      const packed = await compress(format, ...chunks);
      assert.ok(packed.length > 0);
      const back = await decompress(format, packed);
      assert.equal(back.length, all.length);
      assert.ok(latin(back) === latin(all), format);
    }
  }
  assert.ok((await compress("gzip", new Uint8Array(1000000))).length < 5000, "it is smaller");
});

test("headers are those of their formats", async () => {
  assert.deepEqual([...(await compress("gzip", text("x"))).subarray(0, 3)], [0x1f, 0x8b, 8]);
  const zlib = await compress("deflate", text("x"));
  assert.deepEqual([zlib[0] & 15, ((zlib[0] << 8) | zlib[1]) % 31], [8, 0]);
  const gzip = await compress("gzip", text("expected output"));
  assert.deepEqual([...gzip.subarray(-8)], [...b64(known.gzip).subarray(-8)], "checksum and length");
  assert.deepEqual([...(await compress("deflate", text("expected output"))).subarray(-4)], [...b64(known.deflate).subarray(-4)], "checksum");
});

test("chunks are bytes of any kind", async () => {
  const data = text("0123456789abcdef");
  const views = [data, data.buffer, new DataView(data.buffer), new Uint16Array(data.buffer), new Float64Array(data.buffer), new Uint8ClampedArray(data.buffer), new BigInt64Array(data.buffer)];
  for (const view of views) assert.equal(new TextDecoder().decode(await decompress("gzip", await compress("gzip", view))), "0123456789abcdef");
  assert.equal(new TextDecoder().decode(await decompress("gzip", await compress("gzip", new DataView(data.buffer, 2, 3)))), "234");
  for (const Class of [CompressionStream, DecompressionStream]) {
    for (const bad of [undefined, null, 5, "text", {}, [], [1], { length: 1 }]) {
      const stream = new Class("gzip");
      const writer = stream.writable.getWriter();
      const reader = stream.readable.getReader();
      const [w, r] = [writer.write(bad), reader.read()];
      r.catch(() => {});
      await assert.rejects(w, TypeError);
      await assert.rejects(r, TypeError);
      await assert.rejects(writer.closed, TypeError);
      await assert.rejects(reader.closed, TypeError);
    }
  }
  const gone = text("gone");
  gone.buffer.transfer();
  assert.equal((await decompress("gzip", await compress("gzip", gone, text("x")))).length, 1, "a detached chunk is empty");
});

test("a chunk may be changed once it is written", async () => {
  const stream = new CompressionStream("deflate");
  const writer = stream.writable.getWriter();
  const all = collect(stream.readable);
  const data = new Uint8Array(600000).fill(7);
  await 0;
  const first = writer.write(data);
  await new Promise((resolve) => setTimeout(resolve));
  data.fill(9);
  await first;
  await writer.close();
  const back = await decompress("deflate", await all);
  assert.ok(latin(back) === "\x07".repeat(600000));
});

test("data that is cut short is a TypeError", async () => {
  for (const format of formats) {
    const whole = b64(known[format]);
    for (let n = 0; n < whole.length; n++) await assert.rejects(decompress(format, whole.subarray(0, n)), TypeError, `${format} ${n}`);
    await assert.rejects(decompress(format), TypeError, "nothing at all");
    await assert.rejects(decompress(format, new Uint8Array(0)), TypeError);
  }
});

test("data after the end is a TypeError, when what came before was read", async () => {
  for (const format of formats) {
    for (const split of [false, true]) {
      const stream = new DecompressionStream(format);
      const writer = stream.writable.getWriter();
      const reader = stream.readable.getReader();
      const whole = b64(known[format]);
      const writes = split ? [writer.write(whole), writer.write(new Uint8Array(1))] : [writer.write(new Uint8Array([...whole, 0]))];
      writes.push(writer.close());
      for (const w of writes) w.catch(() => {});
      assert.equal(new TextDecoder().decode((await reader.read()).value), "expected output");
      await assert.rejects(reader.read(), TypeError, format);
      await assert.rejects(writes.at(-1), TypeError);
    }
    const twice = new Uint8Array([...b64(known[format]), ...b64(known[format])]);
    await assert.rejects(decompress(format, twice), TypeError, "a second member");
    assert.equal((await decompress(format, b64(known[format]), new Uint8Array(0))).length, 15, "nothing after the end is fine");
  }
});

test("corrupt data is a TypeError", async () => {
  const changes = {
    deflate: [[0, 0x77], [1, 0], [2, 7], [20, 1], [21, 1], [22, 1]],
    gzip: [[0, 0], [1, 0], [2, 7], [3, 0x20], [3, 0x40], [3, 0x80], [3, 2], [3, 255], [10, 7], [27, 1], [28, 1], [31, 1], [32, 1]],
    "deflate-raw": [[0, 7]],
  };
  for (const [format, list] of Object.entries(changes)) {
    for (const [at, value] of list) {
      const bad = b64(known[format]);
      bad[at] = bad[at] === value ? value ^ 2 : value;
      await assert.rejects(decompress(format, bad), TypeError, `${format} ${at}`);
    }
  }
  for (const [format, other] of [["gzip", "deflate"], ["deflate", "gzip"], ["gzip", "deflate-raw"]]) await assert.rejects(decompress(format, b64(known[other])), TypeError);
});

test("gzip: fields of the header that nobody needs", async () => {
  const [head, rest] = [b64(known.gzip).subarray(0, 10), b64(known.gzip).subarray(10)];
  const withFlags = (flags, ...extra) => { const h = new Uint8Array(head); h[3] = flags; h[9] = 255; h[4] = 99; return new Uint8Array([...h, ...extra, ...rest]); };
  for (const data of [withFlags(0), withFlags(1), withFlags(8, ...text("name.txt"), 0), withFlags(16, ...text("comment"), 0), withFlags(4, 3, 0, 1, 2, 3), withFlags(28, 1, 0, 9, 110, 0, 99, 0)]) {
    assert.equal(new TextDecoder().decode(await decompress("gzip", data)), "expected output");
  }
});

test("pipes, and bodies", async () => {
  const body = new Response("x".repeat(100000)).body.pipeThrough(new CompressionStream("gzip")).pipeThrough(new DecompressionStream("gzip"));
  assert.equal((await new Response(body).text()).length, 100000);
  const bad = new Response("not gzip").body.pipeThrough(new DecompressionStream("gzip"));
  await assert.rejects(new Response(bad).text(), TypeError);
});

test("a large output comes in pieces, and only as fast as it is read", async () => {
  const zeros = new Uint8Array(1 << 20);
  const packed = await compress("gzip", ...Array(40).fill(zeros));
  assert.ok(packed.length < 100000);
  const stream = new DecompressionStream("gzip");
  const writer = stream.writable.getWriter();
  let written = false;
  const writing = writer.write(packed).then(() => { written = true; });
  const reader = stream.readable.getReader();
  const first = await reader.read();
  assert.ok(first.value.length <= 65536);
  await new Promise((resolve) => setTimeout(resolve, 20));
  assert.equal(written, false, "the write waits for readers");
  let total = first.value.length;
  writing.then(() => writer.close());
  for (;;) {
    const { value, done } = await reader.read();
    if (done) break;
    total += value.length;
  }
  assert.equal(total, 40 << 20);
});

test("cancel and abort end a stream", async () => {
  const packed = await compress("gzip", new Uint8Array(10 << 20));
  {
    const stream = new DecompressionStream("gzip");
    const writer = stream.writable.getWriter();
    const write = writer.write(packed);
    write.catch(() => {});
    const reader = stream.readable.getReader();
    await reader.read();
    await reader.cancel("enough");
    await write.catch(() => {});
    await writer.closed.catch((e) => assert.equal(e, "enough"));
  }
  {
    const stream = new DecompressionStream("gzip");
    const writer = stream.writable.getWriter();
    writer.write(packed).catch(() => {});
    const reader = stream.readable.getReader();
    await reader.read();
    const reason = new Error("mine");
    await writer.abort(reason).catch(() => {});
    await assert.rejects(async () => { for (;;) if ((await reader.read()).done) return; }, { value: reason });
  }
  for (let i = 0; i < 40; i++) {
    const stream = new CompressionStream("gzip");
    const writer = stream.writable.getWriter();
    const reading = stream.readable.getReader();
    writer.write(new Uint8Array(10)).catch(() => {});
    await reading.read();
    await reading.cancel();
  }
  assert.ok(true, "what is cancelled makes room for others");
});

test("more than 16 at once are refused", async () => {
  const open = Array.from({ length: 20 }, () => new CompressionStream("gzip"));
  const results = await Promise.allSettled(open.map(async (stream) => {
    const reader = stream.readable.getReader();
    stream.writable.getWriter().write(new Uint8Array(10)).catch(() => {});
    await reader.read();
    return reader;
  }));
  assert.deepEqual(results.map((r) => r.status), [...Array(16).fill("fulfilled"), ...Array(4).fill("rejected")]);
  assert.ok(results[19].reason instanceof TypeError);
  for (const r of results) if (r.value) await r.value.cancel();
  assert.equal((await decompress("gzip", await compress("gzip", text("again")))).length, 5);
});

test("guests' patches see nothing", async () => {
  let seen = 0;
  await patched(Object.prototype, "then", { get() { seen++; return undefined; } }, () => patched(Array.prototype, "0", { get() { seen++; }, set() { seen++; } }, async () => {
    const stream = new CompressionStream("gzip");
    stream.writable.getWriter().close().catch(() => {});
    seen = 0;
  }));
  assert.equal(seen, 0);
});
