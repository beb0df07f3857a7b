// fetch() of data: URLs: web-platform-tests fetch/data-urls asks for these.

async function got(url) {
  const response = await fetch(url);
  assert.deepEqual([response.status, response.statusText, response.type, response.ok, response.redirected], [200, "OK", "basic", true, false], url);
  return [response.headers.get("content-type"), String.fromCharCode(...await response.bytes())];
}

test("types and bodies", async () => {
  const cases = [
    ["data:,X", "text/plain;charset=US-ASCII", "X"],
    ["data:,", "text/plain;charset=US-ASCII", ""],
    ["data://test/,X", "text/plain;charset=US-ASCII", "X"],
    ["DATA:text/html,X", "text/html", "X"],
    ["data: ,X", "text/plain;charset=US-ASCII", "X"],
    ["data:,X#X", "text/plain;charset=US-ASCII", "X"],
    ["data:,X?y", "text/plain;charset=US-ASCII", "X?y"],
    ["data:,%FF%20%2c%zz%", "text/plain;charset=US-ASCII", "\xff ,%zz%"],
    ["data:,\u00b1", "text/plain;charset=US-ASCII", "\xc2\xb1"],
    ["data:text/html;charset=gbk,X", "text/html;charset=gbk", "X"],
    ["data:;x=x;charset=x,X", "text/plain;x=x;charset=x", "X"],
    ["data:;charset=utf-8,X", "text/plain;charset=utf-8", "X"],
    ["data:text / html,X", "text/plain;charset=US-ASCII", "X"],
    ["data:†,X", "text/plain;charset=US-ASCII", "X"],
    ["data:X,X", "text/plain;charset=US-ASCII", "X"],
    ["data:image/png,X X", "image/png", "X X"],
    ["data:text/javascript,X X", "text/javascript", "X X"],
    ["data:text/plain;Charset=UTF-8,X", "text/plain;charset=UTF-8", "X"],
    ["data:;%62ase64,WA", "text/plain", "WA"],
    ["data:;base64,WA", "text/plain;charset=US-ASCII", "X"],
    ["data:;base64,W%20A", "text/plain;charset=US-ASCII", "X"],
    ["data:;base64,W%0CA", "text/plain;charset=US-ASCII", "X"],
    ["data:;base64,WA%3D%3D", "text/plain;charset=US-ASCII", "X"],
    ["data:;base64  ,WA", "text/plain;charset=US-ASCII", "X"],
    ["data:  ;  base64,WA", "text/plain;charset=US-ASCII", "X"],
    ["data:;BASe64,WA", "text/plain;charset=US-ASCII", "X"],
    ["data:;base64;,WA", "text/plain", "WA"],
    ["data:;base 64,WA", "text/plain", "WA"],
    ["data:base64,WA", "text/plain;charset=US-ASCII", "WA"],
    ["data:text/plain;base64;base64,WA", "text/plain", "X"],
    ["data:;x=;charset=x,X", "text/plain;charset=x", "X"],
    ["data:;charset=\"x\",X", "text/plain;charset=x", "X"],
  ];
  for (const [url, type, body] of cases) assert.deepEqual(await got(url), [type, body], url);
});

test("refused", async () => {
  for (const url of ["data:", "data:x", "data://test:test/,X", "data:text/html;base64", "data:;base64,X", "data:;base64,WA=", "data:;base64,W_A"]) {
    await assert.rejects(fetch(url), TypeError, url);
  }
});

test("the rest of fetch", async () => {
  const response = await fetch("data:text/x,body#fragment");
  assert.equal(response.url, "data:text/x,body");
  assert.throws(() => response.headers.set("a", "b"), TypeError);
  const copy = response.clone();
  assert.deepEqual([await response.text(), await copy.text(), response.bodyUsed], ["body", "body", true]);
  assert.equal((await fetch("data:,x", { method: "HEAD" })).body, null);
  assert.equal(await (await fetch("data:,x", { method: "POST", body: "y" })).text(), "x");
  await assert.rejects(fetch("data:,x", { signal: AbortSignal.abort("why") }), { value: "why" });
  assert.equal((await (await fetch("data:text/X,x")).blob()).type, "text/x");
});
