// Blob and File.

const text = (...args) => new Blob(...args).text();

test("construction", async () => {
  assert.equal(await text(), "");
  assert.equal(await text(undefined), "");
  assert.equal(await text(["a", 1, null, new Uint8Array([98]), new Uint8Array([99, 100]).buffer, new DataView(new Uint8Array([101, 102]).buffer, 1), new Blob(["z"])]), "a1nullbcdfz");
  assert.equal(await text(new Set(["x", "y"])), "xy");
  assert.equal(await text(["\ud800"]), "\ufffd");
  assert.equal(new Blob(["é"]).size, 2);
  for (const bad of [null, "x", 5, {}, new Date()]) assert.throws(() => new Blob(bad), TypeError);
  assert.throws(() => new Blob([], 5), TypeError);
  assert.throws(() => new Blob([], { endings: "x" }), TypeError);
  assert.throws(() => new Blob([Symbol()]), TypeError);
  const order = [];
  new Blob([], { get type() { order.push("type"); return ""; }, get endings() { order.push("endings"); return "native"; } });
  assert.deepEqual(order, ["endings", "type"]);
});

test("later changes of a buffer are not seen", async () => {
  const bytes = new Uint8Array([97]);
  const b = new Blob([bytes]);
  bytes[0] = 98;
  assert.equal(await b.text(), "a");
  const out = await b.bytes();
  out[0] = 99;
  assert.equal(await b.text(), "a");
});

test("type", () => {
  const cases = { "text/plain": "text/plain", "TEXT/HTML": "text/html", "": "", "x\u007f": "", "a\u0020b": "a b", "é": "", "a\n": "" };
  for (const [given, type] of Object.entries(cases)) assert.equal(new Blob([], { type: given }).type, type, JSON.stringify(given));
  assert.equal(new Blob([], { type: null }).type, "null");
  assert.equal(new Blob([], { type: undefined }).type, "");
});

test("endings", async () => {
  assert.equal(await text(["a\r\nb\rc\nd"], { endings: "native" }), "a\nb\nc\nd");
  assert.equal(await text(["a\r\nb"], { endings: "transparent" }), "a\r\nb");
});

test("slice", async () => {
  const b = new Blob(["0123456789"], { type: "text/x" });
  const cases = [[[], "0123456789"], [[2], "23456789"], [[2, 5], "234"], [[-3], "789"], [[-3, -1], "78"], [[5, 2], ""], [[20], ""], [[0, 100], "0123456789"],
    [[-100, 3], "012"], [[NaN, 2], "01"], [[undefined, undefined], "0123456789"], [["1", "3"], "12"], [[1.5, 3], "2"], [[0, -20], ""]];
  for (const [args, expected] of cases) assert.equal(await b.slice(...args).text(), expected, JSON.stringify(args));
  assert.equal(b.slice().type, "");
  assert.equal(b.slice(0, 1, "A/B").type, "a/b");
  assert.equal(await b.slice(2, 8).slice(1, 3).text(), "34");
});

test("reading", async () => {
  const b = new Blob(["\ufeffhé"]);
  assert.equal(await b.text(), "hé");
  assert.deepEqual([...(await b.bytes())], [0xef, 0xbb, 0xbf, 104, 0xc3, 0xa9]);
  const buffer = await b.arrayBuffer();
  assert.ok(buffer instanceof ArrayBuffer && buffer.byteLength === 6);
  const slice = new Blob(["abc"]).slice(1, 2);
  assert.equal((await slice.arrayBuffer()).byteLength, 1);
  const chunks = [];
  for await (const chunk of new Blob(["abc"]).stream()) chunks.push(...chunk);
  assert.deepEqual(chunks, [97, 98, 99]);
  await assert.rejects(Blob.prototype.text.call({}), TypeError);
  await assert.rejects(Blob.prototype.arrayBuffer.call({}), TypeError);
});

test("File", async () => {
  const f = new File(["x"], "a/b.txt", { type: "t/y", lastModified: 12.7 });
  assert.deepEqual([f.name, f.type, f.size, f.lastModified, await f.text()], ["a/b.txt", "t/y", 1, 12, "x"]);
  assert.ok(f instanceof Blob);
  assert.equal(Object.prototype.toString.call(f), "[object File]");
  assert.ok(Math.abs(new File([], "x").lastModified - Date.now()) < 10000);
  assert.equal(new File([], undefined).name, "undefined");
  assert.equal(new File([], "\ud800").name, "\ufffd");
  assert.equal(new File([], "x", { lastModified: new Date(5) }).lastModified, 5);
  assert.throws(() => new File([]), TypeError);
  assert.throws(() => new File("x", "n"), TypeError);
  assert.equal(f.slice() instanceof File, false);
});

test("File: arguments are converted from left to right, before the constructor of Blob runs", () => {
  const seen = [];
  const noted = (name, value) => ({ toString() { seen.push(name); return value; }, valueOf() { seen.push(name); return 5; } });
  const options = { get type() { seen.push("get type"); return noted("type", "A/B"); }, get lastModified() { return noted("lastModified"); },
    get endings() { seen.push("endings"); return undefined; } };
  const file = new File([noted("bits", "xy")], noted("name", "n"), options);
  assert.deepEqual(seen, ["bits", "name", "endings", "get type", "type", "lastModified"]);
  assert.deepEqual([file.size, file.name, file.type, file.lastModified], [2, "n", "a/b", 5]);
  for (const bits of [null, undefined, "text", 5, {}]) assert.throws(() => new File(bits, "n"), TypeError, show(bits));
});
