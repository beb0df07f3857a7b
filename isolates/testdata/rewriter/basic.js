// HTMLRewriter: streams, chunks, errors, shapes. What handlers make of a page is compared with Cloudflare's runtime, call
// by call, in internal/test/compat.

const bytes = (text) => new TextEncoder().encode(text);
const rewrite = (page, build) => build(new HTMLRewriter()).transform(new Response(page)).text();
const stream = (...parts) => new ReadableStream({ start(c) { for (const part of parts) c.enqueue(typeof part === "string" ? bytes(part) : part); c.close(); } });
async function message(promise) {
  try {
    await promise;
  } catch (e) {
    return `${e.constructor.name}: ${e.message}`;
  }
  return "none";
}

test("an element is changed", async () => {
  assert.equal(await rewrite("<p>a</p><b>c</b>", (r) => r.on("p", { element(e) { e.setAttribute("x", "1"); e.append("!"); } })), `<p x="1">a!</p><b>c</b>`);
});

test("shapes", () => {
  assert.equal(HTMLRewriter.length, 0);
  assert.equal(Object.prototype.toString.call(new HTMLRewriter()), "[object HTMLRewriter]");
  assert.deepEqual(Object.keys(HTMLRewriter.prototype), ["on", "onDocument", "transform"]);
  assert.throws(() => HTMLRewriter(), TypeError);
  for (const name of ["on", "onDocument", "transform"]) {
    for (const self of [undefined, {}, 5, HTMLRewriter.prototype]) assert.throws(() => HTMLRewriter.prototype[name].call(self, "p", {}), TypeError);
  }
  for (const name of ["Element", "EndTag", "Text", "Comment", "Doctype", "DocumentEnd"]) assert.equal(typeof globalThis[name], "undefined", name);
});

test("tokens have their classes, which nobody constructs", async () => {
  const seen = [];
  const look = (t) => { seen.push(Object.prototype.toString.call(t)); assert.throws(() => new t.constructor(), TypeError); assert.throws(() => Object.getOwnPropertyDescriptor(Object.getPrototypeOf(t), t.append ? "append" : t.before ? "before" : "name").value?.call({}, "x"), TypeError); };
  await rewrite("<!doctype html><p>t<!--c--></p>", (r) => r.on("p", { element(e) { look(e); e.onEndTag(look); }, text(t) { if (t.text) look(t); }, comments: look }).onDocument({ doctype(d) { seen.push(Object.prototype.toString.call(d)); }, end: look }));
  assert.deepEqual(seen, ["Doctype", "Element", "Text", "Comment", "EndTag", "DocumentEnd"].map((n) => `[object ${n}]`));
});

test("a bad selector is named", () => {
  const r = new HTMLRewriter();
  for (const [selector, want] of [["p + a", `HTMLRewriter.on: the combinator '+' is not supported`], ["p:hover", `":hover" is not supported in the selector "p:hover"`], ["a..b", `'.' is not expected at position 2 of the selector "a..b"`], ["", "ends too early"]]) {
    let text = "";
    try { r.on(selector, {}); } catch (e) { text = `${e.constructor.name}: ${e.message}`; }
    assert.ok(text.startsWith("TypeError: HTMLRewriter.on: ") && text.includes(want), text);
  }
});

test("pages in chunks of any size come out as they went in", async () => {
  const page = `<!DOCTYPE html><p class="ä">né𝄞e</p><script>"</p>"<!-- <script> </script> --></script><svg><title><b></svg><!-- c --></a x="y>`;
  const all = bytes(page);
  for (let n = 1; n < all.length + 1; n += n < 8 ? 1 : 17) {
    const parts = [];
    for (let at = 0; at < all.length; at += n) parts.push(all.slice(at, at + n));
    let text = "";
    const out = await new HTMLRewriter().on("p", { element(e) { e.getAttribute("class"); }, text(t) { text += t.text; } }).onDocument({ comments() {} }).transform(new Response(stream(...parts))).text();
    assert.equal(out, page, n);
    assert.equal(text, "né𝄞e", n);
  }
});

test("bytes that are no UTF-8 are kept", async () => {
  const page = Uint8Array.of(60, 112, 62, 255, 254, 226, 130, 60, 97, 32, 98, 61, 255, 62);
  const out = await new HTMLRewriter().on("*", { element(e) { if (e.tagName === "a") e.setAttribute("c", ""); }, text() {} }).transform(new Response(page)).bytes();
  assert.deepEqual([...out], [60, 112, 62, 255, 254, 226, 130, 60, 97, 32, 98, 61, 255, ...bytes(` c="">`)]);
});

test("it reads only as far as its reader", async () => {
  let pulled = 0;
  const page = new ReadableStream({ pull(c) { pulled++; c.enqueue(bytes("<p>x</p>")); } }, { highWaterMark: 0 });
  const reader = new HTMLRewriter().on("p", { element(e) { e.append("y"); } }).transform(new Response(page)).body.getReader();
  await Promise.resolve();
  assert.equal(pulled, 0);
  for (let n = 1; n < 4; n++) {
    assert.equal(new TextDecoder().decode((await reader.read()).value), "<p>xy</p>");
    assert.equal(pulled, n);
  }
  await reader.cancel();
});

test("cancelling ends the body", async () => {
  let reason;
  const page = new ReadableStream({ pull(c) { c.enqueue(bytes("<p>")); }, cancel(r) { reason = r; } });
  const { body } = new HTMLRewriter().on("p", {}).transform(new Response(page));
  await body.cancel("enough");
  assert.equal(reason, "enough");
  let other;
  const second = new ReadableStream({ pull(c) { c.enqueue(bytes("<p>")); }, cancel(r) { other = r; } });
  const error = new RangeError("mine");
  assert.equal(await message(new HTMLRewriter().on("p", { element() { throw error; } }).transform(new Response(second)).text()), "RangeError: mine");
  assert.equal(other, error);
});

test("a body whose chunks are not bytes", async () => {
  const page = new ReadableStream({ start(c) { c.enqueue("<p>"); c.close(); } });
  assert.equal(await message(new HTMLRewriter().transform(new Response(page)).text()), "TypeError: HTMLRewriter: a chunk of the body is not a Uint8Array");
});

test("a page beyond the bounds fails", async () => {
  assert.ok((await message(rewrite("<a>".repeat(50000), (r) => r.on("a b", {})))).includes("nested too deep"));
  assert.ok((await message(rewrite(`<a b="${"x".repeat(2e6)}">`, (r) => r.on("a", {})))).includes("more than 1048576 bytes"));
  assert.equal((await rewrite(`<p>${"x".repeat(3e6)}</p>`, (r) => r.on("p", { text() {} }))).length, 3000007);
});

test("many handlers", () => {
  const r = new HTMLRewriter();
  for (let i = 0; i < 1024; i++) i % 2 === 0 ? r.on("a", {}) : r.onDocument({});
  assert.throws(() => r.on("a", {}), TypeError);
  assert.throws(() => r.onDocument({}), TypeError);
});

test("AsyncLocalStorage is that of transform", async () => {
  const store = new AsyncLocalStorage();
  let seen;
  const out = store.run("there", () => new HTMLRewriter().on("p", { element() { seen = store.getStore(); } }).transform(new Response("<p>")));
  await store.run("here", () => out.text());
  assert.equal(seen, "there");
});

test("the response", async () => {
  const from = new Response("<p>", { status: 404, headers: { "content-length": "3", "x-a": "b" } });
  const out = new HTMLRewriter().transform(from);
  assert.equal(out.status, 404);
  assert.deepEqual([...out.headers], [["content-type", "text/plain;charset=UTF-8"], ["x-a", "b"]]);
  out.headers.set("x-a", "c");
  assert.equal(from.headers.get("x-a"), "b");
  assert.ok(from.bodyUsed && !out.bodyUsed);
  assert.throws(() => new HTMLRewriter().transform(new Response("<p>", { headers: { "content-type": "text/html; charset=iso-8859-2" } })), TypeError);
});
