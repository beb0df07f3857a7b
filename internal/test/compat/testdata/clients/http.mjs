// Uses a worker with undici and ws, as programs on Node.js do. Its arguments are a name of checks below and the worker's address.
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { Agent, Client, FormData, fetch, request } from "undici";
import WebSocket from "ws";

const [, , name, at, ca] = process.argv;
const web = new URL(at);
const sha = (bytes) => createHash("sha256").update(bytes).digest("hex");

// until asks again until a fact is there.
async function until(fact) {
  for (;;) {
    const value = await fact();
    if (value) return value;
    await sleep(5);
  }
}

const checks = {
  async undici() {
    const text = await request(`${at}/echo`, { method: "PUT", body: "héllo", headers: { "content-type": "text/plain" } });
    assert.equal(text.statusCode, 200);
    assert.equal(text.headers["x-method"], "PUT");
    assert.ok(text.headers["event-id"]);
    assert.equal(await text.body.text(), "héllo");

    const json = await fetch(`${at}/json`, { method: "POST", body: JSON.stringify({ a: [1] }), headers: { "content-type": "application/json" } });
    assert.deepEqual(await json.json(), { got: { a: [1] }, length: "9" });

    const form = new FormData();
    form.set("note", "läuft");
    form.set("file", new File([new Uint8Array(100_000)], "kite.bin", { type: "application/x-kite" }));
    const sent = await fetch(`${at}/form`, { method: "POST", body: form });
    assert.deepEqual(await sent.json(), { note: "läuft", name: "kite.bin", type: "application/x-kite", size: 100_000 });

    assert.equal(await (await fetch(`${at}/gzip`)).text(), "pinwheel ".repeat(10_000));
    const moved = await fetch(`${at}/redirect`, { method: "POST", body: "kept" });
    assert.deepEqual([moved.redirected, await moved.text()], [true, "kept"]);
    assert.equal((await fetch(`${at}/empty`)).status, 204);
    assert.deepEqual((await fetch(`${at}/cookies`)).headers.getSetCookie(), ["a=1", "b=2; path=/"]);
    assert.equal((await fetch(`${at}/none`)).status, 404);
  },

  // Requests that do not wait for the response before them are answered in order, on one connection.
  async pipelining() {
    const client = new Client(web.origin, { pipelining: 20 });
    let connections = 0;
    client.on("connect", () => connections++);
    const answers = await Promise.all(Array.from({ length: 200 }, async (_, n) => {
      const { body } = await client.request({ path: `${web.pathname}/number?n=${n}`, method: "GET" });
      return Number(await body.text());
    }));
    assert.deepEqual(answers, [...answers.keys()]);
    assert.equal(connections, 1);
    await client.close();
  },

  async uploads() {
    const bytes = randomBytes(8 << 20);
    const echoed = async (init) => {
      const response = await fetch(`${at}/echo`, { method: "POST", ...init });
      assert.equal(sha(new Uint8Array(await response.arrayBuffer())), sha(bytes));
    };
    await echoed({ body: bytes });
    await echoed({ body: (async function* () { for (let i = 0; i < bytes.length; i += 100_000) yield bytes.subarray(i, i + 100_000); })(), duplex: "half" });

    // The answer to a part comes before the next part is sent.
    const client = new Client(web.origin);
    const talk = client.pipeline({ path: `${web.pathname}/echo`, method: "POST", headers: { "content-type": "text/plain" } }, ({ body }) => body);
    const heard = talk[Symbol.asyncIterator]();
    for (const word of ["one", "two", "three"]) {
      talk.write(word);
      assert.equal(String((await heard.next()).value), word);
    }
    talk.end();
    assert.equal((await heard.next()).done, true);
    await client.close();
  },

  // A client that goes away ends what the worker does for it.
  async gone() {
    const leave = new AbortController();
    const response = await fetch(`${at}/endless`, { signal: leave.signal });
    const reader = response.body.getReader();
    await reader.read();
    leave.abort();
    await assert.rejects(reader.read(), { name: "AbortError" });
    await until(async () => (await (await fetch(`${at}/gone`)).json()) === 1);
  },

  async http2() {
    const dispatcher = new Agent({ allowH2: true, connect: { ca: readFileSync(ca), servername: "pinwheel.test" } });
    const bytes = randomBytes(1 << 20);
    const all = await Promise.all(Array.from({ length: 50 }, async () => {
      const response = await fetch(`${at}/echo`, { method: "POST", body: bytes, dispatcher });
      return sha(new Uint8Array(await response.arrayBuffer()));
    }));
    assert.deepEqual(new Set(all), new Set([sha(bytes)]));
    const seen = await (await fetch(`${at}/protocol`, { dispatcher })).json();
    assert.equal(seen.proto, "https");
    await dispatcher.close();
  },

  async ws() {
    const socket = await connect();
    for (const message of ["", "text", "€".repeat(300_000), Buffer.from([0, 255]), randomBytes(1 << 20)]) {
      socket.send(message);
      assert.deepEqual(await socket.next(), message);
    }
    // Fragments are one message, also with a ping between them. The pong has the bytes of the ping.
    socket.send("frag", { fin: false });
    const pong = new Promise((resolve) => { socket.once("pong", resolve); });
    socket.ping("are you there");
    socket.send("ments", { fin: true });
    assert.equal(await socket.next(), "fragments");
    assert.equal(String(await pong), "are you there");
    // Many messages keep their order.
    socket.send("count 5000");
    for (let i = 0; i < 5000; i++) assert.equal(await socket.next(), `message ${i}`);
    for (let i = 0; i < 1000; i++) socket.send(String(i));
    for (let i = 0; i < 1000; i++) assert.equal(await socket.next(), String(i));

    socket.close(4001, "that is all");
    assert.deepEqual(await socket.ended, [4001, "that is all"], "the answer has the code and the reason");
    await until(async () => (await (await fetch(`${at}/closed`)).json()).includes("4001 that is all"));
    const other = await connect();
    other.send("close 3002 go away");
    assert.deepEqual(await other.ended, [3002, "go away"]);

    assert.equal((await connect(["chat.v1", "chat.v2"])).protocol, "chat.v2");
    assert.equal((await connect(undefined, { perMessageDeflate: true })).extensions, "", "compression is offered, and not used");
  },

  // What breaks the protocol closes the socket with the code of RFC 6455.
  async frames() {
    const mask = Buffer.from([1, 2, 3, 4]);
    const frame = (first, payload, masked = true) => Buffer.concat([Buffer.from([first, (masked ? 0x80 : 0) | payload.length]), masked ? mask : Buffer.alloc(0),
      masked ? payload.map((byte, i) => byte ^ mask[i % 4]) : payload]);
    for (const [what, code, bytes] of [
      ["no mask", 1002, frame(0x81, Buffer.from("a"), false)], ["a reserved bit", 1002, frame(0xc1, Buffer.from("a"))], ["a reserved opcode", 1002, frame(0x83, Buffer.from("a"))],
      ["a continuation of nothing", 1002, frame(0x80, Buffer.from("a"))], ["a ping in fragments", 1002, frame(0x09, Buffer.from("a"))],
      ["a close with a bad code", 1002, frame(0x88, Buffer.from([3, 237]))],
      ["text that is no UTF-8", 1007, frame(0x81, Buffer.from([0xff]))],
      ["too long a message", 1009, Buffer.from([0x82, 0xff, 0, 0, 0, 0, 1, 0, 0, 0, 1, 2, 3, 4])],
    ]) {
      const socket = await connect();
      socket._socket.write(bytes);
      assert.equal((await socket.ended)[0], code, what);
    }
    assert.equal((await connect()).readyState, WebSocket.OPEN);
  },
};

// connect opens a WebSocket and takes the "hello".
async function connect(protocols, options) {
  const socket = new WebSocket(`${at.replace(/^http/, "ws")}/socket`, protocols, options);
  const messages = [];
  let wake = () => {};
  socket.on("message", (data, binary) => { messages.push(binary ? data : String(data)); wake(); });
  socket.ended = new Promise((resolve) => { socket.on("close", (code, reason) => resolve([code, String(reason)])); });
  socket.on("error", () => {});
  socket.next = async () => {
    while (messages.length === 0) await new Promise((resolve) => { wake = resolve; });
    return messages.shift();
  };
  await new Promise((resolve, reject) => { socket.once("open", resolve); socket.once("error", reject); });
  assert.equal(await socket.next(), "hello");
  return socket;
}

await checks[name]();
process.exit(0); // with sockets that are open
