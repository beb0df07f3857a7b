// MIME types of bodies, as the MIME Sniffing and Fetch standards parse and extract them.

async function typeOf(...values) {
  const headers = values.map((value) => ["Content-Type", value]);
  const response = new Response("", { headers });
  const request = new Request("http://a/", { method: "POST", body: "", headers });
  const { type } = await response.blob();
  assert.equal((await request.blob()).type, type, values.join());
  return type;
}

async function check(cases) {
  for (const [expected, ...values] of cases) assert.equal(await typeOf(...values), expected, values.join(" | "));
}

test("one type", () => check([
  ["text/html;charset=gbk", "text/html;charset=gbk"],
  ["text/html;charset=GBK", "TEXT/HTML;CHARSET=GBK"],
  ["multipart/form-data;boundary=AbC", "multipart/form-data; Boundary=AbC"],
  ["text/html;test=\"\u00ffE\";charset=gbk", "text/html;test=\u00ffE;charset=gbk"],
  ["text/html;charset=gbk", "\t text/html ;charset=gbk\t"],
  ["text/html;charset=gbk", "text/html;charset=gbk;charset=windows-1255"],
  ["text/html;charset=\"\"", "text/html;charset=\"\""],
  ["text/html;charset=\" gbk\"", "text/html;charset= gbk"],
  ["text/html;charset=\" \\\"gbk\\\"\"", "text/html;charset= \"gbk\""],
  ["text/html;charset=gbk", "text/html;charset=gbk ;x"],
  ["text/html;charset=gbk", "text/html;charset=;charset=gbk"],
  ["text/html;charset=gbk", "text/html;charset =x;charset=gbk"],
  ["text/html;charset=gbk", "text/html;charset=\"gbk\"extra"],
  ["text/html;charset=\"\\\\\"", "text/html;charset=\"\\"],
  ["text/html", "text/html;;;;"],
  ["text/html;a=b", "text/html;=x;a=b"],
  ["", "text/ html"],
  ["", "text /html"],
  ["", "text/html(;doesnot=matter"],
  ["", "text"],
  ["", "/"],
  ["", "*/*"],
]));

test("of many headers the last that is valid counts, with the charset of those of its kind before it", () => check([
  ["text/html", "text/html", "*/*"],
  ["text/html", "*/*", "text/html"],
  ["text/html", "text/html,"],
  ["text/html", ",text/html"],
  ["text/html", "text/html", "bogus"],
  ["", "bogus", "*/*"],
  ["text/html;charset=gbk", "text/html;charset=gbk", "text/html"],
  ["text/html;charset=gbk", "text/html;charset=gbk, text/html"],
  ["text/html;x=y;charset=gbk", "text/html;charset=gbk", "text/html;x=y"],
  ["text/html;charset=gbk", "text/html;charset=gbk", "*/*", "text/html"],
  ["text/plain", "text/html;charset=gbk", "text/plain"],
  ["text/html", "text/html;charset=gbk", "text/plain", "text/html"],
  ["text/html;charset=b", "text/html;charset=a", "text/html;charset=b"],
  ["text/html;charset=a", "text/html;charset=a", "text/html;charset=b", "text/html"],
  ["text/html;charset=\",\"", "text/html;charset=\",\""],
  ["x/x", "text/html;a=\",\", x/x"],
  ["text/html;x=\", text/plain\"", "text/html;x=\"", "text/plain"],
]));

test("formData() goes by it too", async () => {
  const headers = [["content-type", "text/plain"], ["content-type", "application/x-www-form-urlencoded"]];
  assert.equal((await new Response("a=b", { headers }).formData()).get("a"), "b");
  await assert.rejects(new Response("a=b", { headers: headers.reverse() }).formData(), TypeError);
});

test("a part's file has its type in lower case, as every Blob", async () => {
  const body = "--b\r\nContent-Disposition: form-data; filename=\"f\"; name=\"a\"\r\nContent-Type: Text/X; charset=UTF-8\r\n\r\nv\r\n--b--";
  const file = (await new Response(body, { headers: { "content-type": "multipart/form-data; boundary=b" } }).formData()).get("a");
  assert.deepEqual([file.name, file.type], ["f", "text/x; charset=utf-8"]);
});

test("a type keeps its case and what is beyond ASCII on its way", async () => {
  const type = "text/html;test=\"\u00ffE\"";
  const blob = await new Response("x", { headers: { "content-type": type } }).blob();
  assert.equal(structuredClone(blob).type, type);
  assert.equal(new Response(blob).headers.get("content-type"), type);
  assert.equal((await new Response(blob).blob()).type, type);
  const form = new FormData();
  form.append("f", blob, "n");
  assert.equal(form.get("f").type, type);
  assert.equal(new Blob([], { type: "A/B;C=D" }).type, "a/b;c=d");
  // Of a part of a form nothing goes on that could not stand in a header.
  const part = (t) => new Response(`--B\r\nContent-Disposition: form-data; name="a"; filename="b"\r\nContent-Type: ${t}\r\n\r\nx\r\n--B--`, { headers: { "content-type": "multipart/form-data; boundary=B" } }).formData();
  assert.equal((await part("a/b;c=\u010d\u010ax: y")).get("a").type, "");
});
