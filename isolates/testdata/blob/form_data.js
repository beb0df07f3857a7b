// FormData and its two encodings.

test("append, set, get, delete", () => {
  const f = new FormData();
  f.append("a", 1);
  f.append("a", "2");
  f.append("b", "x");
  assert.deepEqual([...f], [["a", "1"], ["a", "2"], ["b", "x"]]);
  f.set("a", "9");
  assert.deepEqual(f.getAll("a"), ["9"]);
  assert.deepEqual([f.get("z"), f.has("b"), f.has("z")], [null, true, false]);
  f.delete("b");
  assert.deepEqual([...f.keys()], ["a"]);
  f.append("\ud800", "\ud800");
  assert.equal(f.get("\ufffd"), "\ufffd");
  assert.throws(() => f.append("a"), TypeError);
  assert.throws(() => f.append("a", "b", "c"), TypeError);
  assert.throws(() => f.set("a", {}, "c"), TypeError);
  assert.throws(() => new FormData("x"), TypeError);
  assert.equal(new FormData(undefined) instanceof FormData, true);
  assert.equal(f[Symbol.iterator], f.entries);
});

test("blobs become files", () => {
  const f = new FormData();
  f.append("b", new Blob(["x"], { type: "t/x" }));
  const file = f.get("b");
  assert.ok(file instanceof File);
  assert.deepEqual([file.name, file.type, file.size], ["blob", "t/x", 1]);
  const original = new File(["y"], "n", { lastModified: 3 });
  f.set("b", original);
  assert.equal(f.get("b"), original);
  f.set("b", original, "other");
  assert.deepEqual([f.get("b").name, f.get("b").lastModified], ["other", 3]);
});

const encode = async (fill) => {
  const form = new FormData();
  fill(form);
  const r = new Response(form);
  return [r.headers.get("content-type"), await r.text()];
};

test("multipart: what is written", async () => {
  const [type, text] = await encode((f) => {
    f.append('n"a\r\nm', "v\nw");
    f.append("file", new File(["body"], 'f"\n.txt', { type: "text/css" }));
    f.append("none", new Blob(["z"]));
  });
  const boundary = type.slice("multipart/form-data; boundary=".length);
  assert.ok(type.startsWith("multipart/form-data; boundary=") && boundary.length > 20 && boundary.length <= 70);
  assert.equal(text, `--${boundary}\r\nContent-Disposition: form-data; name="n%22a%0D%0Am"\r\n\r\nv\r\nw\r\n` +
    `--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="f%22%0A.txt"\r\nContent-Type: text/css\r\n\r\nbody\r\n` +
    `--${boundary}\r\nContent-Disposition: form-data; name="none"; filename="blob"\r\nContent-Type: application/octet-stream\r\n\r\nz\r\n` +
    `--${boundary}--\r\n`);
});

test("multipart: round trip", async () => {
  const form = new FormData();
  form.append("é", "ü\r\nx");
  form.append("f", new File([new Uint8Array([0, 255, 13, 10, 45, 45])], "b.bin", { type: "a/b" }));
  form.append("empty", "");
  const back = await new Response(form).formData();
  assert.deepEqual([...back.keys()], ["é", "f", "empty"]);
  assert.equal(back.get("é"), "ü\r\nx");
  assert.deepEqual([...(await back.get("f").bytes())], [0, 255, 13, 10, 45, 45]);
  assert.deepEqual([back.get("f").name, back.get("f").type, back.get("empty")], ["b.bin", "a/b", ""]);
  const none = await new Response(new FormData()).formData();
  assert.deepEqual([...none], []);
});

const parse = (body, type = "multipart/form-data; boundary=B") => new Response(body, { headers: { "content-type": type } }).formData();

test("multipart: parsing", async () => {
  const f = await parse('--B\r\ncontent-disposition: form-data; name="a"\r\n\r\n1\r\n--B\r\nContent-Type: x/y\r\nContent-Disposition: form-data; name="b"; filename="q"\r\nX-Other: 1\r\n\r\n\r\n--B--');
  assert.equal(f.get("a"), "1");
  assert.deepEqual([f.get("b").name, f.get("b").type, f.get("b").size], ["q", "x/y", 0]);
  assert.equal((await parse('--B\r\nContent-Disposition: form-data; name="x"; filename=""\r\n\r\nv\r\n--B--\r\n')).get("x").name, "");
  assert.equal((await parse('--B\r\nContent-Disposition: form-data; name="a%22%0Ab"\r\n\r\nv\r\n--B--\r\n')).get('a"\nb'), "v");
  const quoted = await parse('--B C\r\nContent-Disposition: form-data; name="a"\r\n\r\nv\r\n--B C--\r\n', 'multipart/form-data; boundary="B C"');
  assert.equal(quoted.get("a"), "v");
});

test("multipart: refused", async () => {
  for (const body of ["", "--B", "--B\r\n", "--X--", "--B\r\n\r\nx\r\n--B--", '--B\r\nContent-Disposition: form-data\r\n\r\nx\r\n--B--', '--B\r\nContent-Disposition: form-data; name="a"\r\n\r\nx',
    '--B\r\nContent-Disposition: form-data; name="a\r\n\r\nx\r\n--B--', '--B\r\nnonsense\r\n\r\nx\r\n--B--', '--B\r\nContent-Disposition: attachment; name="a"\r\n\r\nx\r\n--B--']) {
    await assert.rejects(parse(body), TypeError, JSON.stringify(body));
  }
  for (const type of ["multipart/form-data", "text/plain", "", "application/json"]) await assert.rejects(parse("--B--", type), TypeError, type);
  await assert.rejects(new Response("a=b", { headers: {} }).formData(), TypeError);
  await assert.rejects(new Response().formData(), TypeError);
});

test("urlencoded", async () => {
  const f = await parse("a=1&b=%C3%A9+x&a=2", "application/x-www-form-urlencoded;charset=utf-8");
  assert.deepEqual([...f], [["a", "1"], ["b", "é x"], ["a", "2"]]);
  const p = await new Response(new URLSearchParams("x=%20y")).formData();
  assert.equal(p.get("x"), " y");
});

test("multipart: what other writers make", async () => {
  const parse = (body) => new Response(body, { headers: { "content-type": "multipart/form-data; boundary=b" } }).formData();
  const disposition = (rest, value = "v") => `--b\r\nContent-Disposition: ${rest}\r\n\r\n${value}\r\n--b--`;
  for (const body of [
    disposition("form-data; name=a"), disposition("Form-Data ;name=\"a\""), disposition("form-data; x; NAME = a ; y=z"),
    disposition("form-data; x=\" name=\"; name=\"a\""), `a preamble, --b in it\r\n${disposition("form-data; name=a")}\r\nand an epilogue`,
    disposition("form-data; name=a").replace("--b\r\n", "--b \t\r\n"), `\r\n${disposition("form-data; name=a")}`,
  ]) assert.equal((await parse(body)).get("a"), "v", body);
  const file = (await parse(disposition("form-data; filename=\"; name=x;\"; name=a"))).get("a");
  assert.equal(file.name, "; name=x;");
  assert.equal((await parse(disposition("form-data; name=\"a=b;c\""))).get("a=b;c"), "v");
  for (const body of [disposition("attachment; name=a"), disposition("form-data"), disposition("form-data; name=\"a"), disposition("form-data; xname=a"), "no delimiter", "x--b--"]) {
    await assert.rejects(parse(body), TypeError, body);
  }
});
