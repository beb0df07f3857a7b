// Calls of WebSocketPair, for Cloudflare's workerd in miniflare and for Pinwheel. Each case returns what can be shown as
// JSON. At /talk a client talks to the worker: clients/sockets.mjs does.

// shown makes JSON of what a message has.
async function shown(data) {
  if (typeof data === "string") return data.length > 40 ? `${data.slice(0, 3)}… ${data.length}` : data;
  if (data instanceof Blob) return ["Blob", data.type, ...new Uint8Array(await data.arrayBuffer())];
  if (data instanceof ArrayBuffer) return ["ArrayBuffer", ...new Uint8Array(data)];
  return typeof data;
}

// seen lists the events of a socket. ended settles with its close event. After some closes workerd fires an error, at no
// certain time: what comes after a close is not listed.
function seen(socket, name = "", list = []) {
  let closed = false;
  list.ended = new Promise((done) => {
    socket.addEventListener("message", async ({ data }) => { const at = list.push(name) - 1; list[at] = [name, await shown(data)]; });
    socket.addEventListener("error", () => { if (!closed) list.push([name, "error"]); });
    socket.addEventListener("close", ({ code, reason, wasClean }) => { closed = true; list.push([name, code, reason, wasClean]); done(); });
  });
  return list;
}

// fails says how a call ends. Messages are each runtime's own, and the type counts: programs test it.
function fails(call) {
  try {
    const value = call();
    return value === undefined ? "ok" : value;
  } catch (e) {
    return e instanceof DOMException ? e.name : e.constructor.name;
  }
}

const pair = () => Object.values(new WebSocketPair());

// both returns a pair whose ends are accepted, and what they get.
function both() {
  const [a, b] = pair();
  const atA = seen(a, "a"), atB = seen(b, "b");
  a.accept();
  b.accept();
  return { a, b, atA, atB };
}

// next is the next message of a socket.
const next = (socket) => new Promise((done) => socket.addEventListener("message", ({ data }) => done(shown(data)), { once: true }));

// over waits until both ends are closed.
const over = ({ atA, atB }) => Promise.all([atA.ended, atB.ended]).then(() => [[...atA], [...atB]]);

// sends returns what arrives of what one end sends.
async function sends(data) {
  const { a, b } = both();
  const came = next(b);
  a.send(data);
  return came;
}

// closes returns what the ends see of a close with these arguments.
async function closes(...args) {
  const sockets = both();
  const now = fails(() => sockets.a.close(...args));
  if (now !== "ok") return now;
  return over(sockets);
}

class Mine { toString() { return "mine"; } }

const text = (n) => "x".repeat(n);

const cases = {
  // ---- the pair ----
  "new without new": () => fails(() => WebSocketPair()),
  "keys of a pair": () => Object.keys(new WebSocketPair()),
  "a pair is iterable": () => { const p = new WebSocketPair(); const [a, b] = p; return [a === p[0], b === p[1], [...p].length]; },
  "a pair's ends are WebSockets": () => pair().map((s) => [s instanceof WebSocket, s instanceof EventTarget, s.constructor.name]),
  "tag of a pair": () => Object.prototype.toString.call(new WebSocketPair()),
  "tag of an end": () => Object.prototype.toString.call(pair()[0]),
  "length of a pair": () => [typeof new WebSocketPair().length, Array.from(new WebSocketPair()).length],
  "ends by Object.entries": () => Object.entries(new WebSocketPair()).map(([k, v]) => [k, v instanceof WebSocket]),
  "other index of a pair": () => [typeof new WebSocketPair()[2], 0 in new WebSocketPair(), 2 in new WebSocketPair()],
  "state of a new end": () => pair().map((s) => s.readyState),
  "url of an end": () => pair()[0].url,
  "protocol of an end": () => pair()[0].protocol,
  "extensions of an end": () => pair()[0].extensions,
  "bufferedAmount of an end": () => typeof pair()[0].bufferedAmount,
  "binaryType of an end": () => pair()[0].binaryType,
  "constants": () => [WebSocket.CONNECTING, WebSocket.OPEN, WebSocket.CLOSING, WebSocket.CLOSED],
  "constants of workerd": () => [WebSocket.READY_STATE_CONNECTING, WebSocket.READY_STATE_OPEN, WebSocket.READY_STATE_CLOSING, WebSocket.READY_STATE_CLOSED],
  "constants of an end": () => { const [a] = pair(); return [a.CONNECTING, a.OPEN, a.CLOSING, a.CLOSED]; },
  "handlers of an end": () => { const [a] = pair(); return [a.onopen, a.onmessage, a.onclose, a.onerror]; },
  "methods for hibernation": () => { const [a] = pair(); return [typeof a.serializeAttachment, typeof a.deserializeAttachment]; },
  "attachment": () => { const [a] = pair(); return fails(() => { a.serializeAttachment({ n: 1, d: new Date(0) }); const v = a.deserializeAttachment(); return [v.n, v.d instanceof Date]; }); },
  "no attachment": () => { const [a] = pair(); return fails(() => a.deserializeAttachment()); },
  "JSON of an end": () => JSON.stringify(pair()[0]),
  "clone of an end": () => fails(() => { structuredClone(pair()[0]); }),

  // ---- accept ----
  "accept returns nothing": () => fails(() => pair()[0].accept()),
  "accept twice": () => { const [a] = pair(); a.accept(); return fails(() => a.accept()); },
  "accept with options": () => { const [a] = pair(); return fails(() => a.accept({ allowHalfOpen: true })); },
  "accept with null": () => { const [a] = pair(); return fails(() => a.accept(null)); },
  "accept with a number": () => { const [a] = pair(); return fails(() => a.accept(1)); },
  "accept both": () => fails(() => { both(); }),
  "accept after a close": () => { const { a } = both(); a.close(); return fails(() => a.accept()); },
  "accept of a client's socket": () => fails(() => new WebSocket("ws://127.0.0.1:9/").accept()),
  "state after accept": () => { const { a, b } = both(); return [a.readyState, b.readyState]; },
  "illegal receiver": () => fails(() => WebSocket.prototype.accept.call({})),

  // ---- before accept ----
  "send before accept": () => fails(() => pair()[0].send("x")),
  "close before accept": () => fails(() => pair()[0].close()),
  "close with a code before accept": () => fails(() => pair()[0].close(1000, "bye")),
  "send without arguments before accept": () => fails(() => pair()[0].send()),
  "bad close before accept": () => fails(() => pair()[0].close(5)),
  "sent before the other accepts": async () => { const [a, b] = pair(); a.accept(); a.send("1"); a.send("2"); const list = seen(b); const came = new Promise((done) => b.addEventListener("message", () => list.length === 2 && done())); b.accept(); await came; await null; return list; },
  "closed before the other accepts": async () => { const [a, b] = pair(); a.accept(); a.send("1"); a.close(4000, "r"); const list = seen(b); b.accept(); await list.ended; return list; },
  "listener after accept": async () => { const [a, b] = pair(); a.accept(); a.send("1"); b.accept(); const came = next(b); return came; },
  "nothing arrives at an end that is not accepted": async () => { const [a, b] = pair(); const list = seen(b); a.accept(); a.send("1"); await scheduler.wait(20); return list.length; },

  // ---- messages ----
  "text": () => sends("hello"),
  "empty text": () => sends(""),
  "text beyond ASCII": () => sends("héllo €😀"),
  "lone surrogate": () => sends("a\ud800b"),
  "NUL": () => sends("a\0b"),
  "64 KiB": () => sends(text(65536)),
  "1 MiB": () => sends(text(1 << 20)),
  "number": () => sends(5),
  "null": () => sends(null),
  "undefined": () => sends(undefined),
  "true": () => sends(true),
  "object": () => sends({ a: 1 }),
  "array": () => sends([1, [2]]),
  "instance": () => sends(new Mine()),
  "bigint": () => sends(5n),
  "symbol": () => fails(() => { both().a.send(Symbol("s")); }),
  "date": () => sends(new Date(NaN)),
  "send without arguments": () => fails(() => { both().a.send(); }),
  "toString throws": () => fails(() => { both().a.send({ toString() { throw new RangeError("mine"); } }); }),
  "Uint8Array": () => sends(new Uint8Array([0, 255, 10])),
  "part of an array": () => sends(new Uint8Array([1, 2, 3, 4]).subarray(1, 3)),
  "ArrayBuffer": () => sends(new Uint8Array([1, 2]).buffer),
  "DataView": () => sends(new DataView(new Uint8Array([1, 2, 3]).buffer, 1)),
  "Uint16Array": () => sends(new Uint16Array([1, 258])),
  "empty bytes": () => sends(new Uint8Array()),
  "Blob": () => sends(new Blob(["ab"], { type: "text/x" })),
  "empty Blob": () => sends(new Blob([])),
  "bytes changed after send": async () => { const { a, b } = both(); const bytes = new Uint8Array([1]); const came = next(b); a.send(bytes); bytes[0] = 9; return came; },
  "send returns nothing": () => fails(() => both().a.send("x")),
  "order": async () => { const { a, b } = both(); const list = []; const all = new Promise((done) => { b.addEventListener("message", ({ data }) => { list.push(data); if (list.length === 50) done(); }); }); for (let i = 0; i < 50; i++) a.send(String(i)); await all; return list.join(); },
  "both ways": async () => { const { a, b } = both(); b.addEventListener("message", ({ data }) => b.send(`${data} back`)); const came = next(a); a.send("there"); return came; },
  "a message is not heard at once": async () => { const { a, b } = both(); const list = []; const came = next(b).then(() => list.push("message")); a.send("x"); list.push("now"); await null; list.push("then"); await came; return list; },
  "an end does not hear itself": async () => { const { a, b, atA } = both(); const came = next(b); a.send("x"); await came; return atA.length; },
  "onmessage": async () => { const { a, b } = both(); const came = new Promise((done) => { b.onmessage = done; }); a.send("x"); const e = await came; return [e.constructor.name, e.type, e.data, e.target === b, e.isTrusted]; },
  "members of a message": async () => { const { a, b } = both(); const came = new Promise((done) => { b.onmessage = done; }); a.send("x"); const e = await came; return [e.origin, e.lastEventId, e.source, e.ports, e.bubbles, e.cancelable]; },
  "onmessage and a listener": async () => { const { a, b } = both(); const list = []; b.onmessage = () => list.push("on"); b.addEventListener("message", () => list.push("listener")); const came = next(b); a.send("x"); await came; return list; },
  "onmessage that is removed": async () => { const { a, b } = both(); const list = []; b.onmessage = () => list.push("on"); b.onmessage = null; const came = next(b); a.send("x"); await came; return [list, b.onmessage]; },
  "onmessage of no function": () => { const { b } = both(); b.onmessage = 5; return b.onmessage; },
  "two listeners": async () => { const { a, b } = both(); const list = []; b.addEventListener("message", () => list.push(1)); b.addEventListener("message", () => list.push(2)); const came = next(b); a.send("x"); await came; return list; },
  "listener that is removed": async () => { const { a, b } = both(); const list = []; const f = () => list.push(1); b.addEventListener("message", f); b.removeEventListener("message", f); const came = next(b); a.send("x"); await came; return list; },
  "listener once": async () => { const { a, b } = both(); const list = []; b.addEventListener("message", ({ data }) => list.push(data), { once: true }); let n = 0; const came = new Promise((done) => b.addEventListener("message", () => ++n === 2 && done())); a.send("1"); a.send("2"); await came; return list; },
  "listener with handleEvent": async () => { const { a, b } = both(); const came = new Promise((done) => { b.addEventListener("message", { handleEvent(e) { done(e.data); } }); }); a.send("x"); return came; },
  "this of a listener": async () => { const { a, b } = both(); const came = new Promise((done) => { b.addEventListener("message", function () { done(this === b); }); }); a.send("x"); return came; },
  "own event": () => { const { b } = both(); let got; b.addEventListener("mine", (e) => { got = e.type; }); b.dispatchEvent(new Event("mine")); return got; },
  "own message event": () => { const { b } = both(); let got; b.onmessage = (e) => { got = e.data; }; b.dispatchEvent(new MessageEvent("message", { data: 7 })); return got; },

  // ---- binaryType ----
  "binaryType set": () => { const [a] = pair(); a.binaryType = "arraybuffer"; const first = a.binaryType; a.binaryType = "blob"; return [first, a.binaryType]; },
  "binaryType of another name": () => { const [a] = pair(); a.binaryType = "arraybuffer"; return [fails(() => { a.binaryType = "text"; }), a.binaryType]; },
  "binaryType in capitals": () => { const [a] = pair(); a.binaryType = "arraybuffer"; return [fails(() => { a.binaryType = "Blob"; }), a.binaryType]; },
  "binaryType null": () => { const [a] = pair(); a.binaryType = "arraybuffer"; return [fails(() => { a.binaryType = null; }), a.binaryType]; },
  "bytes as arraybuffer": async () => { const { a, b } = both(); b.binaryType = "arraybuffer"; const came = next(b); a.send(new Uint8Array([1, 2])); return came; },
  "bytes as blob": async () => { const { a, b } = both(); b.binaryType = "blob"; const came = next(b); a.send(new Uint8Array([1, 2])); return came; },
  "binaryType set between": async () => { const { a, b } = both(); const list = []; for (const type of ["blob", "arraybuffer", "blob"]) { b.binaryType = type; const came = next(b); a.send(new Uint8Array([7])); list.push(await came); } return list; },
  "binaryType of the other end": async () => { const { a, b } = both(); a.binaryType = "arraybuffer"; b.binaryType = "blob"; const came = next(b); a.send(new Uint8Array([7])); return came; },
  "text with binaryType": async () => { const { a, b } = both(); b.binaryType = "arraybuffer"; const came = next(b); a.send("x"); return came; },

  // ---- close ----
  "close": () => closes(),
  "close undefined": () => closes(undefined),
  "close undefined with a reason": () => closes(undefined, "why"),
  "close null": () => closes(null),
  "close with a reason": () => closes(4000, "why"),
  "close with an empty reason": () => closes(4000, ""),
  "close with a reason undefined": () => closes(4000, undefined),
  "close with a reason null": () => closes(4000, null),
  "close with a number as reason": () => closes(4000, 5),
  "close with a reason beyond ASCII": () => closes(4000, "é€😀"),
  "close with a lone surrogate": () => closes(4000, "a\ud800"),
  "close with 123 bytes": () => closes(4000, text(123)).then((all) => JSON.stringify(all).length),
  "close with 124 bytes": () => closes(4000, text(124)),
  "close with 123 characters of 2 bytes": () => closes(4000, "é".repeat(123)),
  "close with a text as code": () => closes("4000"),
  "close with no number": () => closes("x"),
  "close with a fraction": () => closes(4000.7),
  "close with NaN": () => closes(NaN),
  "close with an object": () => closes({ valueOf: () => 4001 }),
  "close with true": () => closes(true),
  "close returns nothing": () => fails(() => both().a.close()),
  "close twice": async () => { const s = both(); s.a.close(4000, "one"); const second = fails(() => s.a.close(4001, "two")); return [second, await over(s)]; },
  "close by both": async () => { const s = both(); s.a.close(4000, "a"); s.b.close(4001, "b"); return over(s); },
  "close answered by hand": async () => { const s = both(); s.b.addEventListener("close", ({ code }) => { s.answer = fails(() => s.b.close(code, "answer")); }); s.a.close(4000, "a"); return [await over(s), s.answer]; },
  "close after the end": async () => { const s = both(); s.a.close(4000, "a"); await over(s); return [fails(() => s.a.close()), fails(() => s.b.close()), fails(() => s.a.close(4001, "x"))]; },
  "bad close after the end": async () => { const s = both(); s.a.close(4000, "a"); await over(s); return fails(() => s.a.close(5)); },
  "states of a close": async () => { const s = both(); const list = [s.a.readyState]; s.b.addEventListener("close", () => list.push(["b", s.b.readyState])); s.a.addEventListener("close", () => list.push(["a", s.a.readyState])); s.a.close(4000, "a"); list.push([s.a.readyState, s.b.readyState]); await over(s); list.push([s.a.readyState, s.b.readyState]); return list; },
  "messages before a close": async () => { const s = both(); s.a.send("1"); s.a.send("2"); s.a.close(4000, "r"); return over(s); },
  "sent before the other's close": async () => { const s = both(); s.b.send("last"); s.a.close(4001, "bye"); return over(s); },
  "answer after a close": async () => { const s = both(); s.b.addEventListener("message", () => { s.late = fails(() => s.b.send("late")); }); s.a.send("1"); s.a.close(4000, "r"); return [await over(s), s.late]; },
  "send after close": () => { const { a } = both(); a.close(); return fails(() => a.send("x")); },
  "send after the end": async () => { const s = both(); s.a.close(); await over(s); return [fails(() => s.a.send("x")), fails(() => s.b.send("x"))]; },
  "send without arguments after the end": async () => { const s = both(); s.a.close(); await over(s); return fails(() => s.a.send()); },
  "accept after the end": async () => { const s = both(); s.a.close(); await over(s); return fails(() => s.a.accept()); },
  "members of a close": async () => { const { a, b } = both(); const came = new Promise((done) => { b.onclose = done; }); a.close(4000, "r"); const e = await came; return [e.constructor.name, e.type, e.code, e.reason, e.wasClean, e.target === b, e.bubbles, e.cancelable]; },
  "close in a listener": async () => { const s = both(); s.b.addEventListener("message", () => s.b.close(4002, "enough")); s.a.send("x"); return over(s); },
  "send in a listener of close": async () => { const s = both(); s.b.addEventListener("close", () => { s.sent = fails(() => s.b.send("x")); }); s.a.close(4000, "r"); return [await over(s), s.sent]; },
  "half open": async () => { const [a, b] = pair(); const s = { a, b, atA: seen(a, "a"), atB: seen(b, "b") }; a.accept({ allowHalfOpen: true }); b.accept({ allowHalfOpen: true }); s.b.addEventListener("close", () => { s.state = b.readyState; s.sent = fails(() => b.send("still")); s.closed = fails(() => b.close(4005, "now")); }); a.close(4000, "r"); return [await over(s), s.state, s.sent, s.closed]; },
  "error listener": async () => { const s = both(); s.a.close(1011, "broken"); return over(s); },
  "CloseEvent": () => { const e = new CloseEvent("close", { code: 4000, reason: "r", wasClean: true }); return [e.code, e.reason, e.wasClean, e instanceof Event]; },
  "CloseEvent without parts": () => { const e = new CloseEvent("close"); return [e.code, e.reason, e.wasClean]; },
  "ErrorEvent of a socket": () => typeof ErrorEvent,

  // ---- Responses ----
  "webSocket of a Response": () => { const [client, server] = pair(); server.accept(); const r = new Response(null, { status: 101, webSocket: client }); return [r.status, r.webSocket === client, r.body]; },
  "webSocket with another status": () => { const [client, server] = pair(); server.accept(); return fails(() => new Response(null, { status: 200, webSocket: client }).status); },
  "status 101 without a webSocket": () => fails(() => new Response(null, { status: 101 }).status),
  "webSocket null": () => fails(() => new Response(null, { status: 200, webSocket: null }).webSocket),
  "webSocket undefined": () => fails(() => new Response(null, { webSocket: undefined }).webSocket),
  "webSocket of another type": () => fails(() => new Response(null, { status: 101, webSocket: {} }).status),
  "webSocket with a body": () => { const [client, server] = pair(); server.accept(); return fails(() => new Response("x", { status: 101, webSocket: client }).status); },
  "webSocket of a plain Response": () => new Response("x").webSocket,
  "clone with a webSocket": () => { const [client, server] = pair(); server.accept(); return fails(() => { new Response(null, { status: 101, webSocket: client }).clone(); }); },
  "statusText of 101": () => { const [client, server] = pair(); server.accept(); return new Response(null, { status: 101, webSocket: client }).statusText; },
  "headers of a webSocket": () => { const [client, server] = pair(); server.accept(); return [...new Response(null, { status: 101, webSocket: client, headers: { "x-a": "b" } }).headers]; },
  "Response of a Response with a webSocket": () => { const [client, server] = pair(); server.accept(); const r = new Response(null, { status: 101, webSocket: client }); return fails(() => new Response(null, r).webSocket === client); },
};

for (const code of [0, 1, 999, 1000, 1001, 1002, 1003, 1004, 1005, 1006, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014, 1015, 1016, 2000, 2999, 3000, 3999, 4000, 4999, 5000, 65535, 65536, 66536, -1]) {
  cases[`close ${code}`] = () => closes(code, "r");
}

// records are what the sockets of clients have seen, by the name of the case.
const records = {};

// served are what the worker does with its end of a client's socket.
const served = {
  echo: (s) => { s.addEventListener("message", ({ data }) => s.send(data)); },
  kinds: (s) => { s.addEventListener("message", async ({ data }) => s.send(JSON.stringify(await shown(data)))); },
  buffers: (s) => { s.binaryType = "arraybuffer"; s.addEventListener("message", async ({ data }) => s.send(JSON.stringify(await shown(data)))); },
  early: (s) => { s.send("early"); s.send(new Uint8Array([1, 2])); },
  "early close": (s) => { s.send("last"); s.close(4001, "early"); },
  close: (s) => { s.addEventListener("message", () => s.close()); },
  "close 1000": (s) => { s.addEventListener("message", () => s.close(1000)); },
  "close 1001": (s) => { s.addEventListener("message", () => s.close(1001, "away")); },
  "close 1011": (s) => { s.addEventListener("message", () => s.close(1011, "fault")); },
  "close 3000": (s) => { s.addEventListener("message", () => s.close(3000, "é€")); },
  "close reason": (s) => { s.addEventListener("message", () => s.close(4000, "x".repeat(123))); },
  "close and send": (s, list) => { s.addEventListener("message", () => { s.send("1"); s.close(4000, "r"); list.push(fails(() => s.send("2"))); }); },
  answers: (s, list) => { s.addEventListener("close", ({ code }) => list.push(fails(() => s.close(code, "answer")))); },
  late: (s, list) => { s.addEventListener("close", () => list.push([s.readyState, fails(() => s.send("late"))])); },
  "rejects once": (s) => { let n = 0; s.addEventListener("message", async ({ data }) => { if (n++ === 0) throw new RangeError("mine"); s.send(data); }); },
  types: (s) => { for (const data of [5, null, undefined, { a: 1 }, new Blob(["ab"]), new Uint8Array([3]), new DataView(new ArrayBuffer(2))]) s.send(data); s.send("end"); },
};

// talk is a request of a client for a socket.
function talk(request, url) {
  if (request.headers.get("upgrade") !== "websocket") return new Response(`no socket: ${request.headers.get("upgrade")}`, { status: 426 });
  const name = url.searchParams.get("name");
  const list = records[name] = [];
  const [client, server] = pair();
  list.ended = seen(server, "worker", list).ended;
  list.push(server.readyState);
  if (name === "refused") return new Response("no", { status: 403 });
  server.accept();
  served[url.searchParams.get("as")]?.(server, list);
  const headers = new Headers({ "x-own": "mine" });
  if (name.startsWith("protocol")) headers.set("Sec-WebSocket-Protocol", name.split(" ")[1]);
  if (name === "cookie") headers.append("Set-Cookie", "a=1");
  return new Response(null, { status: 101, webSocket: client, headers });
}

export default {
  async fetch(request) {
    const url = new URL(request.url);
    if (url.pathname.endsWith("/talk")) return talk(request, url);
    if (url.pathname.endsWith("/record")) {
      const list = records[url.searchParams.get("name")];
      if (list === undefined) return Response.json("none");
      if (url.searchParams.has("ended")) await list.ended;
      return Response.json(list);
    }
    const all = {};
    for (const [name, run] of Object.entries(cases)) {
      try {
        const value = await Promise.race([run(), scheduler.wait(20_000).then(() => "no answer")]);
        all[name] = value === undefined ? "undefined" : value;
      } catch (e) {
        all[name] = `throws ${e?.constructor?.name}`;
      }
    }
    return Response.json(all);
  },
};
