// URL.createObjectURL, and fetch of what it gives.

test("a Blob is fetched by its URL", async () => {
  const blob = new Blob(["some ", "text"], { type: "text/x;a=b" });
  const url = URL.createObjectURL(blob);
  assert.ok(/^blob:null\/[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(url), url);
  assert.notEqual(URL.createObjectURL(blob), url);
  assert.deepEqual([new URL(url).protocol, new URL(url).origin], ["blob:", "null"]);
  const r = await fetch(url);
  assert.deepEqual([r.status, r.statusText, r.type, r.url, r.redirected, r.ok], [200, "OK", "basic", url, false, true]);
  assert.deepEqual([...r.headers], [["content-length", "9"], ["content-type", "text/x;a=b"]]);
  assert.equal(await r.text(), "some text");
  assert.equal((await (await fetch(url + "#part")).blob()).type, "text/x;a=b");
  const chunks = [];
  for await (const chunk of (await fetch(new Request(url))).body) chunks.push(...chunk);
  assert.equal(new TextDecoder().decode(new Uint8Array(chunks)), "some text");
  assert.equal(await (await fetch(URL.createObjectURL(new File([], "empty")))).text(), "");
});

test("one that is revoked or unknown", async () => {
  const url = URL.createObjectURL(new Blob(["x"]));
  const before = new Request(url);
  const copy = before.clone();
  assert.equal(URL.revokeObjectURL("http://a/"), undefined);
  URL.revokeObjectURL("no URL");
  URL.revokeObjectURL(url + "#part");
  assert.equal(await (await fetch(url)).text(), "x", "with a fragment it is another");
  URL.revokeObjectURL(url);
  URL.revokeObjectURL(url);
  await assert.rejects(fetch(url), TypeError);
  assert.equal(await (await fetch(before)).text(), "x", "a request has what its URL was when it was made");
  assert.equal(await (await fetch(copy)).text(), "x");
  for (const bad of ["blob:", "blob:null/", "blob:http://a/b", url + "x"]) await assert.rejects(fetch(bad), TypeError, bad);
  const other = URL.createObjectURL(new Blob(["x"]));
  await assert.rejects(fetch(other, { method: "POST" }), TypeError);
  await assert.rejects(fetch(other, { method: "HEAD" }), TypeError);
  await assert.rejects(fetch(other, { signal: AbortSignal.abort("mine") }), { value: "mine" });
});

test("what is wrong", () => {
  for (const bad of [undefined, null, {}, "text", new Uint8Array(1), new ReadableStream(), new Response("x")]) assert.throws(() => URL.createObjectURL(bad), TypeError);
  assert.throws(() => URL.createObjectURL(), TypeError);
  assert.throws(() => URL.revokeObjectURL(), TypeError);
});

test("at most 1000 at once", () => {
  const urls = [];
  const blob = new Blob(["x"]);
  assert.throws(() => { for (;;) urls.push(URL.createObjectURL(blob)); }, "QuotaExceededError");
  assert.ok(urls.length <= 1000 && urls.length > 900, urls.length);
  for (const url of urls) URL.revokeObjectURL(url);
  URL.revokeObjectURL(URL.createObjectURL(blob));
  assert.ok(true);
});
