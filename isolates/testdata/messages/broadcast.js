// BroadcastChannel among the channels of a context.

const sleep = (ms = 0) => new Promise((done) => setTimeout(done, ms));
const heard = (channel) => {
  const list = [];
  channel.addEventListener("message", (e) => list.push(e.data));
  return list;
};

test("a message reaches every other channel of the name, once, cloned, in the order in which they were made", async () => {
  const [a, b, c, other] = ["n", "n", "n", "m"].map((name) => new BroadcastChannel(name));
  const order = [];
  let event;
  for (const [name, channel] of Object.entries({ c, b, a, other })) channel.onmessage = (e) => { order.push(name); event = e; };
  const sent = { list: [new Map([[1, 2]])], bytes: new Uint8Array([1, 2]) };
  const got = new Promise((done) => c.addEventListener("message", (e) => done(e.data)));
  const also = new Promise((done) => b.addEventListener("message", (e) => done(e.data)));
  a.postMessage(sent);
  sent.bytes[0] = 9;
  assert.deepEqual(order, []);
  const [one, two] = [await got, await also];
  await sleep(2);
  assert.deepEqual(order, ["b", "c"]);
  assert.ok(one !== two && one !== sent && one.list[0].get(1) === 2 && one.bytes[0] === 1 && two.bytes[0] === 1);
  assert.ok(event instanceof MessageEvent && event.isTrusted && event.target === c);
  assert.deepEqual([event.origin, event.lastEventId, event.source, event.ports.length], ["", "", null, 0]);
  for (const channel of [a, b, c, other]) channel.close();
});

test("many messages, and from within a listener", async () => {
  const a = new BroadcastChannel("x");
  const b = new BroadcastChannel("x");
  const [atA, atB] = [heard(a), heard(b)];
  b.addEventListener("message", (e) => { if (e.data < 3) b.postMessage(e.data * 10); });
  for (let i = 1; i <= 3; i++) a.postMessage(i);
  while (atA.length < 2 || atB.length < 3) await sleep(1);
  assert.deepEqual([atB, atA], [[1, 2, 3], [10, 20]]);
  a.close();
  b.close();
});

test("close", async () => {
  const a = new BroadcastChannel("x");
  const b = new BroadcastChannel("x");
  const c = new BroadcastChannel("x");
  const [atB, atC] = [heard(b), heard(c)];
  a.postMessage(1);
  b.close();
  b.close();
  const late = new BroadcastChannel("x");
  const atLate = heard(late);
  while (atC.length < 1) await sleep(1);
  await sleep(2);
  assert.deepEqual([atB, atC, atLate], [[], [1], []]);
  assert.throws(() => b.postMessage(1), "InvalidStateError");
  a.close();
  c.postMessage(2);
  a.onmessage = () => { throw new Error("closed"); };
  while (atLate.length < 1) await sleep(1);
  assert.equal(b.name, "x");
  c.close();
  late.close();
});

test("what is wrong", async () => {
  assert.throws(() => new BroadcastChannel(), TypeError);
  assert.throws(() => BroadcastChannel("x"), TypeError);
  assert.throws(() => new BroadcastChannel(Symbol()), TypeError);
  assert.equal(new BroadcastChannel(null).name, "null");
  const a = new BroadcastChannel("x");
  assert.throws(() => a.postMessage(), TypeError);
  assert.throws(() => a.postMessage(() => {}), "DataCloneError");
  assert.throws(() => a.postMessage(new MessageChannel().port1), "DataCloneError");
  assert.throws(() => a.postMessage({ get x() { throw new RangeError("mine"); } }), RangeError);
  a.close();
  const b = new BroadcastChannel("y");
  const atB = heard(b);
  const closing = new BroadcastChannel("y");
  let reads = 0;
  const more = Array.from({ length: 5 }, () => new BroadcastChannel("y"));
  closing.postMessage({ get x() { reads++; more[0].close(); return 1; } });
  while (atB.length < 1) await sleep(1);
  assert.deepEqual([atB, reads], [[{ x: 1 }], 1]);
  for (const channel of [b, closing, ...more]) channel.close();
});

test("at most 1000 are open", () => {
  const open = [];
  assert.throws(() => { for (;;) open.push(new BroadcastChannel("many")); }, "QuotaExceededError");
  assert.ok(open.length <= 1000 && open.length > 900, open.length);
  for (const channel of open) channel.close();
  new BroadcastChannel("again").close();
});
