// Resizable buffers, and views of them, are not taken where a type does not say so: Web IDL's [AllowResizable].

test("resizable buffers are a TypeError", async () => {
  const fresh = () => new ArrayBuffer(8, { maxByteLength: 16 });
  const sync = {
    decode: (x) => new TextDecoder().decode(x),
    Blob: (x) => new Blob([x]),
    Response: (x) => new Response(x),
    Request: (x) => new Request("http://x/", { method: "POST", body: x }),
  };
  for (const [name, take] of Object.entries(sync)) {
    for (const value of [fresh(), new Uint8Array(fresh()), new DataView(fresh()), new Uint8Array(fresh(), 0, 4)]) assert.throws(() => take(value), TypeError, name);
    take(fresh().transferToFixedLength());
  }
  assert.throws(() => new TextEncoder().encodeInto("x", new Uint8Array(fresh())), TypeError);
  assert.throws(() => crypto.getRandomValues(new Uint8Array(fresh())), TypeError);
  await assert.rejects(crypto.subtle.digest("SHA-1", fresh()), TypeError);
});

test("byte streams refuse them", async () => {
  const view = () => new Uint8Array(new ArrayBuffer(8, { maxByteLength: 16 }));
  let c;
  const r = new ReadableStream({ type: "bytes", start(x) { c = x; } }).getReader({ mode: "byob" });
  await assert.rejects(r.read(view()), TypeError);
  const read = r.read(new Uint8Array(8));
  assert.throws(() => c.enqueue(view()), TypeError);
  assert.throws(() => c.byobRequest.respondWithNewView(view()), TypeError);
  c.enqueue(new Uint8Array([1]));
  assert.deepEqual([...(await read).value], [1]);
  for (const make of [() => new TextDecoderStream(), () => new CompressionStream("gzip")]) {
    const t = make();
    const output = t.readable.getReader().read();
    await assert.rejects(t.writable.getWriter().write(view()), TypeError);
    await assert.rejects(output, TypeError);
  }
});
