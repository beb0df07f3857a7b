// fetch(): what it refuses before anything is asked of the network.

test("arguments", async () => {
  await assert.rejects(fetch(), TypeError);
  await assert.rejects(fetch("/relative"), TypeError);
  await assert.rejects(fetch("http://u:p@h/"), TypeError);
  await assert.rejects(fetch("ftp://h/"), TypeError);
  await assert.rejects(fetch("file:///etc/passwd"), TypeError);
  await assert.rejects(fetch("http://h/", { method: "TRACE" }), TypeError);
  await assert.rejects(fetch("http://h/", { body: "x" }), TypeError);
  assert.ok(fetch("bad").catch(() => {}) instanceof Promise);
});

test("a signal that is aborted already", async () => {
  await assert.rejects(fetch("http://h.invalid/", { signal: AbortSignal.abort("r") }), { value: "r" });
  await assert.rejects(fetch("http://h.invalid/", { signal: AbortSignal.abort() }), "AbortError");
  let canceled;
  const body = new ReadableStream({ cancel(r) { canceled = r; } });
  await assert.rejects(fetch("http://h.invalid/", { method: "POST", body, duplex: "half", signal: AbortSignal.abort("c") }), { value: "c" });
  assert.equal(canceled, "c");
});

test("abort while the body is being read", async () => {
  const c = new AbortController();
  const body = new ReadableStream({ pull() { return new Promise(() => {}); } });
  const p = fetch("http://h.invalid/", { method: "POST", body, duplex: "half", signal: c.signal });
  c.abort("now");
  await assert.rejects(p, { value: "now" });
});

test("a request whose body fails", async () => {
  const error = new Error("body");
  const body = new ReadableStream({ start(ctl) { ctl.error(error); } });
  await assert.rejects(fetch("http://h.invalid/", { method: "POST", body, duplex: "half" }), { value: error });
});

test("a used request", async () => {
  const r = new Request("http://h.invalid/", { method: "POST", body: "x" });
  await r.text();
  await assert.rejects(fetch(r), TypeError);
});

test("abort cancels the body that is being read", async () => {
  const c = new AbortController();
  const seen = [];
  const body = new ReadableStream({ pull() { return new Promise(() => {}); }, cancel(reason) { seen.push(reason); } });
  const p = fetch("http://h.invalid/", { method: "POST", body, duplex: "half", signal: c.signal });
  c.abort("now");
  assert.deepEqual(seen, ["now"]);
  await assert.rejects(p, { value: "now" });
});
