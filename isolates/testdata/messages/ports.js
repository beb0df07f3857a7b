// MessageChannel, MessagePort and MessageEvent.

const sleep = (ms = 0) => new Promise((done) => setTimeout(done, ms));
const next = (port, type = "message") => new Promise((done) => port.addEventListener(type, done, { once: true }));

function pair() {
  const { port1, port2 } = new MessageChannel();
  return [port1, port2];
}

test("a message arrives later, cloned, as an event", async () => {
  const [a, b] = pair();
  const sent = { n: 1, list: [new Map([[1, 2]])] };
  let got;
  b.onmessage = (e) => { got = e; };
  a.postMessage(sent);
  assert.equal(got, undefined);
  await Promise.resolve();
  assert.equal(got, undefined, "not in a microtask");
  sent.n = 2;
  await next(b);
  assert.ok(got instanceof MessageEvent);
  assert.notEqual(got.data, sent);
  assert.equal(got.data.n, 1, "cloned when it was posted");
  assert.equal(got.data.list[0].get(1), 2);
  assert.deepEqual([got.type, got.origin, got.lastEventId, got.source, got.isTrusted, got.bubbles, got.cancelable, got.target === b], ["message", "", "", null, true, false, false, true]);
  assert.ok(Object.isFrozen(got.ports) && got.ports.length === 0 && got.ports === got.ports);
});

test("order, and microtasks in between", async () => {
  const [a, b] = pair();
  const seen = [];
  b.onmessage = (e) => { seen.push(e.data); Promise.resolve().then(() => seen.push("micro")); };
  for (let i = 0; i < 3; i++) a.postMessage(i);
  seen.push("sync");
  while (seen.length < 7) await sleep(1);
  assert.deepEqual(seen, ["sync", 0, "micro", 1, "micro", 2, "micro"]);
});

test("both ways", async () => {
  const [a, b] = pair();
  b.onmessage = (e) => b.postMessage(e.data * 2);
  a.start();
  a.postMessage(21);
  assert.equal((await next(a)).data, 42);
});

test("a port waits for start or onmessage", async () => {
  const [a, b] = pair();
  const seen = [];
  b.addEventListener("message", (e) => seen.push(e.data));
  a.postMessage("early");
  await sleep(3);
  assert.deepEqual(seen, []);
  b.start();
  b.start();
  a.postMessage("late");
  while (seen.length < 2) await sleep(1);
  assert.deepEqual(seen, ["early", "late"]);
  const [c, d] = pair();
  c.postMessage(1);
  d.onmessage = null;
  const e = next(d);
  assert.equal((await e).data, 1, "setting onmessage starts it, whatever the value");
});

test("handler attributes", () => {
  const [a] = pair();
  for (const name of ["onmessage", "onmessageerror", "onclose"]) {
    assert.equal(a[name], null);
    const f = () => {};
    a[name] = f;
    assert.equal(a[name], f);
    a[name] = 5;
    assert.equal(a[name], null);
    assert.throws(() => Object.getOwnPropertyDescriptor(MessagePort.prototype, name).set.call({}, f), TypeError);
  }
});

test("what cannot be cloned throws and sends nothing", async () => {
  const [a, b] = pair();
  const seen = [];
  b.onmessage = (e) => seen.push(e.data);
  assert.throws(() => a.postMessage(() => {}), "DataCloneError");
  assert.throws(() => a.postMessage(Symbol()), "DataCloneError");
  assert.throws(() => a.postMessage({ p: b }), "DataCloneError", "a port that is not transferred");
  assert.throws(() => a.postMessage(a, [a]), "DataCloneError", "the port itself");
  assert.throws(() => a.postMessage(1, [{}]), "DataCloneError");
  const buffer = new ArrayBuffer(4);
  assert.throws(() => a.postMessage(() => {}, [buffer]), "DataCloneError");
  assert.equal(buffer.byteLength, 4, "not moved");
  assert.throws(() => a.postMessage(1, [buffer, buffer]), "DataCloneError");
  assert.throws(() => a.postMessage(), TypeError);
  assert.throws(() => a.postMessage(1, 5), TypeError);
  assert.throws(() => a.postMessage(1, [5]), TypeError);
  assert.throws(() => a.postMessage(1, { transfer: 5 }), TypeError);
  assert.throws(() => a.postMessage(1, { [Symbol.iterator]: 5 }), TypeError);
  await sleep(3);
  assert.deepEqual(seen, []);
});

test("buffers are transferred", async () => {
  const [a, b] = pair();
  b.start();
  for (const options of [(x) => [x], (x) => ({ transfer: [x] }), (x) => new Set([x])]) {
    const buffer = new Uint8Array([1, 2, 3]).buffer;
    a.postMessage({ buffer }, options(buffer));
    assert.equal(buffer.byteLength, 0);
    const { data } = await next(b);
    assert.deepEqual([...new Uint8Array(data.buffer)], [1, 2, 3]);
  }
  a.postMessage(1, null);
  a.postMessage(2, undefined);
  assert.equal((await next(b)).data, 1);
  assert.equal((await next(b)).data, 2);
});

test("ports are transferred, with what they have", async () => {
  const [a, b] = pair();
  const [c, d] = pair();
  c.postMessage("queued before");
  b.start();
  a.postMessage({ port: d, twice: d }, [d]);
  const e = await next(b);
  const moved = e.data.port;
  assert.ok(moved instanceof MessagePort && moved !== d);
  assert.equal(e.data.twice, moved);
  assert.deepEqual([e.ports.length, e.ports[0] === moved], [1, true]);
  assert.throws(() => e.ports.push(1), TypeError);
  const seen = [];
  moved.onmessage = (m) => { seen.push(m.data); moved.postMessage(`re: ${m.data}`); };
  c.onmessage = (m) => seen.push(m.data);
  c.postMessage("after");
  while (seen.length < 4) await sleep(1);
  assert.deepEqual(seen.sort(), ["after", "queued before", "re: after", "re: queued before"]);
  d.postMessage("from the old one goes nowhere");
  await sleep(3);
  assert.equal(seen.length, 4);
  assert.throws(() => a.postMessage(0, [d]), "DataCloneError", "it is detached");
});

test("a port in a message to itself is lost with it", async () => {
  const [a, b] = pair();
  let got = false;
  b.onmessage = () => { got = true; };
  a.postMessage("x", [b]);
  await sleep(3);
  assert.equal(got, false);
});

test("structuredClone moves ports", async () => {
  const [a, b] = pair();
  const copy = structuredClone({ b }, { transfer: [b] });
  assert.ok(copy.b instanceof MessagePort && copy.b !== b);
  copy.b.start();
  a.postMessage("hello");
  assert.equal((await next(copy.b)).data, "hello");
  assert.throws(() => structuredClone(a), "DataCloneError");
  assert.throws(() => structuredClone(new MessageChannel()), "DataCloneError");
  assert.throws(() => structuredClone(new MessageEvent("x")), "DataCloneError");
});

test("close", async () => {
  const [a, b] = pair();
  const seen = [];
  b.onmessage = (e) => seen.push(e.data);
  b.onclose = (e) => seen.push(e.type, e.isTrusted);
  a.onclose = () => seen.push("own");
  a.postMessage("last");
  a.close();
  a.close();
  a.postMessage("lost");
  assert.deepEqual(seen, []);
  while (seen.length < 3) await sleep(1);
  assert.deepEqual(seen, ["last", "close", true]);
  b.postMessage("to nobody");
  assert.throws(() => b.postMessage(() => {}), "DataCloneError", "still cloned");
  const buffer = new ArrayBuffer(1);
  b.postMessage(1, [buffer]);
  assert.equal(buffer.byteLength, 0, "still transferred");
  const [c, d] = pair();
  const closed = next(d, "close");
  c.postMessage("never read");
  let read = false;
  d.addEventListener("message", () => { read = true; });
  c.close();
  await closed;
  assert.equal(read, false, "close comes without start, messages do not");
  const [x, y] = pair();
  y.onmessage = () => { read = true; };
  x.postMessage(1);
  y.close();
  await sleep(3);
  assert.equal(read, false, "a closed port hears nothing");
});

test("errors of listeners are reported, and the next message comes", async () => {
  const [a, b] = pair();
  const seen = [];
  const onerror = (e) => { seen.push(e.error.message); e.preventDefault(); };
  addEventListener("error", onerror);
  b.onmessage = (e) => { throw new Error(e.data); };
  a.postMessage("one");
  a.postMessage("two");
  while (seen.length < 2) await sleep(1);
  removeEventListener("error", onerror);
  assert.deepEqual(seen, ["one", "two"]);
});

test("listeners run in the context that made the port", async () => {
  const als = new AsyncLocalStorage();
  const [a, b] = als.run("maker", pair);
  const seen = [];
  b.onmessage = () => seen.push(als.getStore());
  als.run("poster", () => a.postMessage(1));
  while (seen.length < 1) await sleep(1);
  assert.deepEqual(seen, ["maker"]);
});

test("MessageEvent", () => {
  const e = new MessageEvent("x");
  assert.deepEqual([e.data, e.origin, e.lastEventId, e.source, e.ports.length, e.isTrusted], [null, "", "", null, 0, false]);
  const [a] = pair();
  const data = {};
  const f = new MessageEvent("x", { data, origin: "o\ud800", lastEventId: 5, source: a, ports: new Set([a]), bubbles: true });
  assert.deepEqual([f.data === data, f.origin, f.lastEventId, f.source === a, f.ports[0] === a, f.bubbles], [true, "o\ufffd", "5", true, true, true]);
  assert.ok(Object.isFrozen(f.ports));
  assert.equal(new MessageEvent("x", { data: undefined }).data, null);
  assert.throws(() => new MessageEvent("x", { source: {} }), TypeError);
  assert.throws(() => new MessageEvent("x", { ports: [{}] }), TypeError);
  assert.throws(() => new MessageEvent("x", { ports: 5 }), TypeError);
  assert.throws(() => new MessageEvent("x", 5), TypeError);
  assert.throws(() => new MessageEvent(), TypeError);
  const seen = [];
  new MessageEvent("x", new Proxy({}, { get(_, key) { seen.push(key); } }));
  assert.deepEqual(seen, ["bubbles", "cancelable", "composed", "data", "lastEventId", "origin", "ports", "source"]);
  f.initMessageEvent("y", false, true, 1, "p", "q", null, []);
  assert.deepEqual([f.type, f.bubbles, f.cancelable, f.data, f.origin, f.lastEventId, f.source, f.ports.length], ["y", false, true, 1, "p", "q", null, 0]);
  assert.throws(() => MessageEvent.prototype.initMessageEvent.call(new Event("x"), "y"), TypeError);
  assert.throws(() => f.initMessageEvent(), TypeError);
});

test("shape", () => {
  assert.throws(() => new MessagePort(), TypeError);
  assert.throws(() => MessageChannel(), TypeError);
  assert.ok(new MessageChannel().port1 instanceof EventTarget);
  const channel = new MessageChannel();
  assert.equal(channel.port1, channel.port1);
  assert.throws(() => Object.getOwnPropertyDescriptor(MessageChannel.prototype, "port1").get.call({}), TypeError);
  assert.throws(() => MessagePort.prototype.postMessage.call({}, 1), TypeError);
  assert.equal(Object.prototype.toString.call(channel.port1), "[object MessagePort]");
});
