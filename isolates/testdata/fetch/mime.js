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
  ["text/html;charset=gbk", "TEXT/HTML;CHARSET=GBK"],
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
