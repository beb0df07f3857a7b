// EventSource, as far as it goes without a server.

const settle = (ms = 3) => new Promise((done) => setTimeout(done, ms));

test("constructor", () => {
  assert.throws(() => new EventSource(), TypeError);
  assert.throws(() => EventSource("http://h/"), TypeError);
  assert.throws(() => new EventSource("nonsense"), "SyntaxError");
  assert.throws(() => new EventSource("/relative"), "SyntaxError");
  assert.throws(() => new EventSource("http://h/", 5), TypeError);
  const source = new EventSource("HTTP://127.0.0.1:1/a b#c", { withCredentials: 1 });
  assert.deepEqual([source.url, source.withCredentials, source.readyState], ["http://127.0.0.1:1/a%20b#c", true, 0]);
  source.close();
  assert.equal(source.readyState, 2);
  source.close();
  const plain = new EventSource("http://127.0.0.1:1/");
  assert.equal(plain.withCredentials, false);
  plain.close();
});

test("shape", () => {
  assert.equal(EventSource.length, 1);
  for (const [name, value] of [["CONNECTING", 0], ["OPEN", 1], ["CLOSED", 2]]) {
    for (const holder of [EventSource, EventSource.prototype]) {
      assert.deepEqual(Object.getOwnPropertyDescriptor(holder, name), { value, writable: false, enumerable: true, configurable: false });
    }
  }
  assert.equal(Object.getPrototypeOf(EventSource), EventTarget);
  assert.throws(() => EventSource.prototype.close.call({}), TypeError);
  assert.throws(() => EventSource.prototype.readyState, TypeError);
  const source = new EventSource("http://127.0.0.1:1/");
  for (const name of ["onopen", "onmessage", "onerror"]) {
    assert.equal(source[name], null);
    const f = () => {};
    source[name] = f;
    assert.equal(source[name], f);
    source[name] = 1;
    assert.equal(source[name], null);
  }
  source.close();
});

test("a scheme that fetch does not know fails for good, later", async () => {
  const source = new EventSource("ftp://h/");
  const seen = [];
  source.onerror = (e) => seen.push(e.type, e.isTrusted, e instanceof MessageEvent, source.readyState);
  assert.deepEqual([seen.length, source.readyState], [0, 0]);
  await settle();
  assert.deepEqual(seen, ["error", true, false, 2]);
});

test("a closed source says nothing", async () => {
  const source = new EventSource("ftp://h/");
  let said = 0;
  source.onerror = () => said++;
  source.close();
  await settle();
  assert.equal(said, 0);
});

test("who closes in the error event is not connected again", async () => {
  const source = new EventSource("http://127.0.0.1:1/");
  const states = [];
  await new Promise((done) => { source.onerror = () => { states.push(source.readyState); source.close(); done(); }; });
  await settle();
  assert.deepEqual([...states, source.readyState], [0, 2]);
});
