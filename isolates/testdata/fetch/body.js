// The Body mixin: text, json, bytes, arrayBuffer, blob, body and bodyUsed.

const streamOf = (...chunks) => new ReadableStream({ start(c) { for (const x of chunks) c.enqueue(x); c.close(); } });
const bytes = (...list) => new Uint8Array(list);

const kinds = {
  string: () => new Response("hé"),
  bytes: () => new Response(bytes(104, 0xc3, 0xa9)),
  buffer: () => new Response(bytes(104, 0xc3, 0xa9).buffer),
  view: () => new Response(new DataView(bytes(0, 104, 0xc3, 0xa9).buffer, 1)),
  blob: () => new Response(new Blob(["hé"])),
  stream: () => new Response(streamOf(bytes(104, 0xc3), bytes(0xa9))),
  request: () => new Request("http://h/", { method: "POST", body: "hé" }),
  touched: () => { const r = new Response("hé"); void r.body; return r; },
  cloned: () => new Response("hé").clone(),
};

test("every kind of body reads the same every way", async () => {
  for (const [name, make] of Object.entries(kinds)) {
    assert.equal(await make().text(), "hé", name);
    assert.deepEqual([...(await make().bytes())], [104, 0xc3, 0xa9], name);
    const buffer = await make().arrayBuffer();
    assert.ok(buffer instanceof ArrayBuffer && buffer.byteLength === 3, name);
    assert.equal(await (await make().blob()).text(), "hé", name);
    const chunks = [];
    for await (const chunk of make().body) { assert.ok(chunk instanceof Uint8Array, name); chunks.push(...chunk); }
    assert.deepEqual(chunks, [104, 0xc3, 0xa9], name);
  }
});

test("a body is read once", async () => {
  for (const [name, make] of Object.entries(kinds)) {
    const r = make();
    assert.equal(r.bodyUsed, false, name);
    const first = r.text();
    assert.equal(r.bodyUsed, true, name);
    const { body } = r;
    assert.equal(body.locked, true, name);
    await first;
    for (const method of ["text", "json", "bytes", "arrayBuffer", "blob", "formData"]) await assert.rejects(r[method](), TypeError, `${name} ${method}`);
    assert.ok(r.body instanceof ReadableStream, name);
    assert.equal(r.body, body, name);
    assert.equal(body.locked, true, name);
    assert.throws(() => body.getReader(), TypeError, name);
    await assert.rejects(body.cancel(), TypeError, name);
    const late = make();
    await late.text();
    assert.deepEqual([late.body.locked, late.bodyUsed], [true, true], name);
    assert.throws(() => late.body.getReader(), TypeError, name);
  }
});

test("null bodies are read as often as one likes", async () => {
  const r = new Response(null);
  assert.equal(await r.text(), "");
  assert.equal(await r.text(), "");
  assert.equal((await r.bytes()).length, 0);
  assert.equal((await r.arrayBuffer()).byteLength, 0);
  assert.equal((await r.blob()).size, 0);
  assert.equal(r.bodyUsed, false);
  await assert.rejects(r.json(), SyntaxError);
});

test("locked and disturbed bodies", async () => {
  const r = new Response("x");
  const reader = r.body.getReader();
  assert.equal(r.bodyUsed, false);
  await assert.rejects(r.text(), TypeError);
  reader.releaseLock();
  assert.equal(await r.text(), "x");
  const s = new Response("abc");
  const partial = s.body.getReader();
  await partial.read();
  partial.releaseLock();
  assert.equal(s.bodyUsed, true);
  await assert.rejects(s.text(), TypeError);
  const used = streamOf(bytes(1));
  used.getReader();
  assert.throws(() => new Response(used), TypeError);
  const c = new Response("x");
  await c.body.cancel();
  assert.equal(c.bodyUsed, true);
});

test("body is one stream, of bytes", async () => {
  const r = new Response("abc");
  assert.equal(r.body, r.body);
  const { value } = await r.body.getReader({ mode: "byob" }).read(new Uint8Array(2));
  assert.deepEqual([...value], [97, 98]);
  const s = streamOf(bytes(1));
  assert.equal(new Response(s).body, s);
});

test("json", async () => {
  const cases = [["1", 1], [" [1,\n2] ", [1, 2]], ['"\\u00e9"', "é"], ["null", null], ["\ufeff{}", {}]];
  for (const [text, value] of cases) {
    assert.deepEqual(await new Response(text).json(), value, text);
    assert.deepEqual(await new Response(new TextEncoder().encode(text)).json(), value, text);
  }
  for (const bad of ["", "{", "undefined", "{'a':1}", "1 2", "\u00a01"]) await assert.rejects(new Response(bad).json(), SyntaxError, bad);
  const failed = new Response("{");
  await assert.rejects(failed.json(), SyntaxError);
  assert.equal(failed.bodyUsed, true);
});

test("text decodes like UTF-8 without a fatal flag", async () => {
  assert.equal(await new Response(bytes(0xef, 0xbb, 0xbf, 97)).text(), "a");
  assert.equal(await new Response("\ufeffa").text(), "a");
  assert.equal(await new Response("\ufeff\ufeffa").text(), "\ufeffa");
  assert.equal(await new Response(bytes(0xff, 97)).text(), "\ufffda");
  assert.equal(await new Response("\ud800").text(), "\ufffd");
  assert.equal(await new Response(bytes(0xff), { headers: { "content-type": "text/plain;charset=latin1" } }).text(), "\ufffd");
});

test("blob takes its type from the headers", async () => {
  const cases = [[{ "content-type": "TEXT/Html; Charset=x" }, "text/html;charset=x"], [{}, ""], [{ "content-type": "nonsense" }, ""], [{ "content-type": 'a/b; c="d e"' }, 'a/b;c="d e"']];
  for (const [headers, type] of cases) assert.equal((await new Response(bytes(1), { headers }).blob()).type, type, JSON.stringify(headers));
  assert.equal((await new Response(new Blob([], { type: "x/y" })).blob()).type, "x/y");
});

test("what is handed out is the caller's own", async () => {
  const source = bytes(1, 2, 3);
  const r = new Response(source);
  source[0] = 9;
  const c = r.clone();
  const out = await r.bytes();
  assert.deepEqual([...out], [1, 2, 3]);
  out[0] = 8;
  assert.deepEqual([...(await c.bytes())], [1, 2, 3]);
  const b = new Blob([bytes(5)]);
  (await new Response(b).bytes())[0] = 6;
  assert.deepEqual([...(await b.bytes())], [5]);
});

test("streams that fail or carry something else", async () => {
  const error = new Error("mid");
  const failing = () => new ReadableStream({ pull(c) { c.error(error); } });
  for (const method of ["text", "json", "bytes", "arrayBuffer", "blob"]) await assert.rejects(new Response(failing())[method](), { value: error });
  for (const chunk of ["text", 5, null, new ArrayBuffer(1), new Uint16Array(1)]) await assert.rejects(new Response(streamOf(chunk)).text(), TypeError);
  assert.equal(await new Response(streamOf(bytes(), bytes(97), bytes())).text(), "a");
});

test("many small chunks", async () => {
  let n = 0;
  const s = new ReadableStream({ pull(c) { if (n++ === 20000) c.close(); else c.enqueue(bytes(97)); } });
  assert.equal((await new Response(s).text()).length, 20000);
  let controller;
  const queued = new ReadableStream({ start(c) { controller = c; } });
  for (let i = 0; i < 20000; i++) controller.enqueue(bytes(98));
  controller.close();
  assert.equal((await new Response(queued).bytes()).length, 20000);
});
