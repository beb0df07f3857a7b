// WebSocket and CloseEvent, as far as they go without a server: port 1 of this machine refuses.

const nowhere = "ws://127.0.0.1:1/";

function closes(socket) {
  return new Promise((done) => { socket.addEventListener("close", done, { once: true }); });
}

// refused is a socket whose connection fails.
async function refused() {
  const socket = new WebSocket(nowhere);
  await closes(socket);
  return socket;
}

test("constructor: arguments and their order", () => {
  assert.equal(WebSocket.length, 1);
  assert.throws(() => new WebSocket(), TypeError);
  assert.throws(() => WebSocket(nowhere), TypeError);
  assert.throws(() => new WebSocket(Symbol()), TypeError);
  assert.throws(() => new WebSocket(nowhere, Symbol()), TypeError);
  assert.throws(() => new WebSocket(nowhere, [Symbol()]), TypeError);
  assert.throws(() => new WebSocket("nonsense", { get [Symbol.iterator]() { throw new RangeError("first"); } }), RangeError);
  assert.throws(() => new WebSocket(nowhere, { [Symbol.iterator]: 5 }), TypeError);
});

test("constructor: URLs", () => {
  for (const url of ["", "/relative", "nonsense", "ws:", "wss://", "ws://[::1", "ws://h:99999/", "ftp://h/", "about:blank", "data:,x", "mailto:a@b",
    "javascript:1", "ws://h/#", "ws://h/#x", "http://h/#x", "file:///x", "blob:https://h/x", "wsx://h/"]) {
    assert.throws(() => new WebSocket(url), "SyntaxError", url);
  }
  for (const [given, url] of [["ws://127.0.0.1:1", "ws://127.0.0.1:1/"], ["WS://127.0.0.1:1/a b?c d", "ws://127.0.0.1:1/a%20b?c%20d"], ["http://127.0.0.1:1/", "ws://127.0.0.1:1/"],
    ["https://127.0.0.1:443/x", "wss://127.0.0.1/x"], ["ws://127.0.0.1:80/", "ws://127.0.0.1/"], ["http://127.0.0.1:80/", "ws://127.0.0.1/"], [" ws:\\\\127.0.0.1:1\\x ", "ws://127.0.0.1:1/x"],
    ["ws://EXAMPLE.invalid/\ud800", "ws://example.invalid/%EF%BF%BD"], ["ws://u:p@127.0.0.1:1/", "ws://u:p@127.0.0.1:1/"], ["ws://127.0.0.1:1/%23", "ws://127.0.0.1:1/%23"]]) {
    const socket = new WebSocket(given);
    assert.equal(socket.url, url, given);
    socket.close();
  }
  const socket = new WebSocket(new URL("ws://127.0.0.1:1/object"));
  assert.equal(socket.url, "ws://127.0.0.1:1/object");
  socket.close();
});

test("constructor: protocols", () => {
  for (const wrong of ["", " ", "a b", "a,b", "é", "\u0080", "\u0000", "a\u007f", "a\n", "(", ")", "<", ">", "@", ",", ";", ":", "\\", "\"", "/", "[", "]", "?", "=", "{", "}", "\t", "a/b",
    [""], ["a", ""], ["a", "a"], ["a", "b", "A"], ["a", "b c"], [["a", "b"]]]) {
    assert.throws(() => new WebSocket(nowhere, wrong), "SyntaxError", JSON.stringify(wrong));
  }
  for (const right of ["a", "chat", ["chat", "super.chat"], [], new Set(["x", "y"]), undefined, null, 5, "!#$%&'*+-.^_`|~"]) {
    const socket = new WebSocket(nowhere, right);
    assert.deepEqual([socket.protocol, socket.extensions], ["", ""]);
    socket.close();
  }
});

test("shape", () => {
  assert.equal(Object.getPrototypeOf(WebSocket), EventTarget);
  assert.equal(Object.prototype.toString.call(WebSocket.prototype), "[object WebSocket]");
  for (const [name, value] of [["CONNECTING", 0], ["OPEN", 1], ["CLOSING", 2], ["CLOSED", 3]]) {
    for (const holder of [WebSocket, WebSocket.prototype]) {
      assert.deepEqual(Object.getOwnPropertyDescriptor(holder, name), { value, writable: false, enumerable: true, configurable: false });
    }
  }
  assert.deepEqual(Object.keys(WebSocket.prototype), ["url", "readyState", "bufferedAmount", "onopen", "onerror", "onclose", "extensions", "protocol", "accept", "close",
    "onmessage", "binaryType", "send", "CONNECTING", "OPEN", "CLOSING", "CLOSED",
    "READY_STATE_CONNECTING", "READY_STATE_OPEN", "READY_STATE_CLOSING", "READY_STATE_CLOSED"]); // the last four as workerd has them
  assert.deepEqual([WebSocket.prototype.send.length, WebSocket.prototype.close.length], [1, 0]);
  for (const name of ["url", "readyState", "bufferedAmount", "extensions", "protocol"]) {
    assert.equal(Object.getOwnPropertyDescriptor(WebSocket.prototype, name).set, undefined, name);
    assert.throws(() => WebSocket.prototype[name], TypeError, name);
  }
  for (const method of ["send", "close"]) {
    assert.throws(() => WebSocket.prototype[method].call({}, "x"), TypeError);
    assert.throws(() => WebSocket.prototype[method].call(new EventTarget(), "x"), TypeError);
  }
  assert.throws(() => structuredClone(Object.create(WebSocket.prototype)), "DataCloneError");
});

test("attributes", () => {
  const socket = new WebSocket(nowhere);
  assert.deepEqual([socket.readyState, socket.bufferedAmount, socket.binaryType], [0, 0, "blob"]);
  for (const [given, want] of [["arraybuffer", "arraybuffer"], ["Blob", "arraybuffer"], ["", "arraybuffer"], [null, "arraybuffer"], ["blob", "blob"], [{ toString: () => "arraybuffer" }, "arraybuffer"]]) {
    socket.binaryType = given;
    assert.equal(socket.binaryType, want);
  }
  assert.throws(() => { socket.binaryType = Symbol(); }, TypeError);
  assert.throws(() => { socket.url = "x"; }, TypeError);
  for (const name of ["onopen", "onmessage", "onerror", "onclose"]) {
    assert.equal(socket[name], null);
    const f = () => {};
    socket[name] = f;
    assert.equal(socket[name], f);
    socket[name] = "text";
    assert.equal(socket[name], null);
    const object = {};
    socket[name] = object;
    assert.equal(socket[name], object);
  }
  socket.close();
});

test("send", async () => {
  const socket = new WebSocket(nowhere);
  assert.throws(() => socket.send(), TypeError);
  assert.throws(() => socket.send(Symbol()), TypeError);
  assert.throws(() => socket.send({ toString() { throw new RangeError("converted first"); } }), RangeError);
  for (const data of ["x", "", new Uint8Array(1), new ArrayBuffer(1), new DataView(new ArrayBuffer(1)), new Blob(["x"]), null, 5]) {
    assert.throws(() => socket.send(data), "InvalidStateError");
  }
  assert.equal(socket.bufferedAmount, 0);
  socket.close();
  assert.equal(socket.readyState, WebSocket.CLOSING);
  let want = 0;
  for (const [data, bytes] of [["x", 1], ["é", 2], ["€", 3], ["𝄞", 4], ["\ud800", 3], ["", 0], [new Uint16Array(3), 6], [new ArrayBuffer(7), 7], [new DataView(new ArrayBuffer(9), 4), 5],
    [new Blob(["abc", "d"]), 4], [null, 4], [undefined, 9], [12, 2], [{}, 15], [structuredClone(new ArrayBuffer(8)).slice(3), 5]]) {
    socket.send(data);
    assert.equal(socket.bufferedAmount, want += bytes);
  }
  const gone = new ArrayBuffer(8);
  structuredClone(gone, { transfer: [gone] });
  socket.send(gone);
  assert.equal(socket.bufferedAmount, want);
  await closes(socket);
  socket.send("more");
  assert.equal(socket.bufferedAmount, want + 4);
});

test("close: arguments", async () => {
  const socket = new WebSocket(nowhere);
  for (const code of [0, 1, 999, 1001, 1002, 1005, 1006, 1015, 2999, 5000, 65535, -1, 70000, NaN, null, "x", Infinity, -Infinity, 999.4, 1000.6, {}]) {
    assert.throws(() => socket.close(code), "InvalidAccessError", String(code));
    assert.equal(socket.readyState, 0);
  }
  assert.throws(() => socket.close(Symbol()), TypeError);
  assert.throws(() => socket.close(1000, Symbol()), TypeError);
  assert.throws(() => socket.close(1000, "x".repeat(124)), "SyntaxError");
  assert.throws(() => socket.close(undefined, "é".repeat(62)), "SyntaxError");
  assert.throws(() => socket.close(3000, "\ud800".repeat(42)), "SyntaxError");
  assert.throws(() => socket.close(5, "x".repeat(124)), "InvalidAccessError");
  assert.equal(socket.readyState, 0);
  socket.close(2999.5, "x".repeat(123)); // [Clamp] rounds half to even
  assert.equal(socket.readyState, 2);
  assert.throws(() => socket.close(5), "InvalidAccessError", "also when it is closing");
  await closes(socket);
  assert.equal(socket.readyState, 3);
  socket.close();
  socket.close(4999, "late");
  assert.throws(() => socket.close(1001), "InvalidAccessError");
});

test("a connection that fails: error, then close", async () => {
  const socket = new WebSocket(nowhere);
  const seen = [];
  for (const type of ["open", "message", "error", "close"]) {
    socket.addEventListener(type, (e) => seen.push([type, socket.readyState, e.constructor.name, e.isTrusted, e.bubbles, e.cancelable, e.target === socket]));
  }
  let close;
  socket.onclose = (e) => { close = e; };
  assert.equal(socket.readyState, 0);
  await closes(socket);
  assert.deepEqual(seen, [["error", 3, "Event", true, false, false, true], ["close", 3, "CloseEvent", true, false, false, true]]);
  assert.deepEqual([close.code, close.reason, close.wasClean], [1006, "", false]);
});

test("what listeners throw is reported and stops nothing", async () => {
  const errors = [];
  const listen = (e) => { errors.push(e.error); e.preventDefault(); };
  addEventListener("error", listen);
  const socket = new WebSocket(nowhere);
  socket.onerror = () => { throw 1; };
  socket.onclose = () => { throw 2; };
  await closes(socket);
  await new Promise((done) => setTimeout(done));
  removeEventListener("error", listen);
  assert.deepEqual(errors, [1, 2]);
});

test("a subclass", async () => {
  class Mine extends WebSocket {
    constructor() { super(nowhere); this.mine = 1; }
  }
  const socket = new Mine();
  assert.deepEqual([socket instanceof WebSocket, socket.mine, socket.readyState], [true, 1, 0]);
  await closes(socket);
});

test("inspection", async () => {
  const socket = await refused();
  assert.throws(() => structuredClone(socket), "DataCloneError");
});

test("what a guest patches is not used", async () => {
  await patched(WebSocket.prototype, "readyState", { get() { throw 1; } }, () =>
    patched(Map.prototype, "get", { value() { throw 1; } }, () =>
      patched(Set.prototype, "has", { value() { throw 1; } }, () =>
        patched(String.prototype, "toLowerCase", { value() { throw 1; } }, async () => {
          const socket = new WebSocket(nowhere, ["a", "b"]);
          socket.close();
          await closes(socket);
        }))));
  assert.ok(true);
});

test("CloseEvent", () => {
  assert.equal(CloseEvent.length, 1);
  assert.equal(Object.getPrototypeOf(CloseEvent), Event);
  assert.throws(() => new CloseEvent(), TypeError);
  assert.throws(() => CloseEvent("x"), TypeError);
  assert.throws(() => new CloseEvent("x", 5), TypeError);
  assert.throws(() => new CloseEvent("x", { reason: Symbol() }), TypeError);
  const plain = new CloseEvent("x");
  assert.deepEqual([plain.type, plain.wasClean, plain.code, plain.reason, plain.bubbles], ["x", false, 0, "", false]);
  for (const init of [undefined, null, {}]) assert.equal(new CloseEvent("x", init).code, 0);
  const full = new CloseEvent("y", { wasClean: 1, code: 65537.9, reason: "é\ud800", cancelable: true });
  assert.deepEqual([full.wasClean, full.code, full.reason, full.cancelable, full.isTrusted], [true, 1, "é\ufffd", true, false]);
  assert.deepEqual([new CloseEvent("x", { code: -1 }).code, new CloseEvent("x", { code: "0x10" }).code, new CloseEvent("x", { code: NaN }).code], [65535, 16, 0]);
  const order = [];
  new CloseEvent("x", new Proxy({}, { get(_, key) { order.push(key); } }));
  assert.deepEqual(order, ["bubbles", "cancelable", "composed", "code", "reason", "wasClean"]);
  assert.deepEqual(Object.keys(CloseEvent.prototype), ["wasClean", "code", "reason"]);
  for (const name of ["wasClean", "code", "reason"]) assert.throws(() => CloseEvent.prototype[name], TypeError);
  assert.throws(() => Object.getOwnPropertyDescriptor(CloseEvent.prototype, "code").get.call(new Event("x")), TypeError);
  assert.equal(Object.prototype.toString.call(plain), "[object CloseEvent]");
});
