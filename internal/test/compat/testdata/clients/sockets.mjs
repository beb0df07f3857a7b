// A client of sockets.js: what it and the worker see of a socket, case by case. Programs of Node.js call it for Pinwheel,
// with the worker's address as argument, and sockets.mjs for workerd.
import WebSocket from "ws";

const shown = (data, isBinary) => isBinary ? ["bytes", ...data] : data.length > 40 ? `${String(data).slice(0, 3)}… ${data.length}` : String(data);

// connect returns a socket, and what it sees: it is over when the socket is closed.
function connect(at, name, { as = "", protocols, headers } = {}) {
  const socket = new WebSocket(`${at}/talk?name=${encodeURIComponent(name)}&as=${encodeURIComponent(as)}`, protocols, { headers });
  const list = [];
  socket.came = (count) => new Promise((done) => { const check = () => list.filter(([kind]) => kind === "message").length >= count && done(); socket.on("message", check); check(); });
  socket.opened = new Promise((done, fail) => { socket.on("open", () => done(socket)); socket.on("error", fail); });
  socket.opened.catch(() => {}); // what is refused never opens, and over says it
  socket.over = new Promise((done) => {
    socket.on("message", (data, isBinary) => list.push(["message", shown(data, isBinary)]));
    socket.on("error", () => list.push(["error"]));
    socket.on("close", (code, reason) => { list.push(["close", code, String(reason)]); done(list); });
  });
  socket.on("unexpected-response", (_, response) => { list.push(["status", response.statusCode]); response.resume(); socket.emit("error", new Error("refused")); socket.emit("close", 0, ""); });
  socket.on("upgrade", (response) => { socket.response = response; });
  return socket;
}

// Each returns what the client saw. What the worker saw is asked for afterwards, when the socket's end is known there.
const cases = {
  async "echo of text"(at, name) { const s = await connect(at, name, { as: "echo" }).opened; s.send("héllo €😀"); await s.came(1); s.close(1000); return s.over; },
  async "echo of no text"(at, name) { const s = await connect(at, name, { as: "echo" }).opened; s.send(""); await s.came(1); s.close(1000); return s.over; },
  async "echo of bytes"(at, name) { const s = await connect(at, name, { as: "echo" }).opened; s.send(Buffer.from([0, 255])); await s.came(1); s.close(1000); return s.over; },
  async "echo of no bytes"(at, name) { const s = await connect(at, name, { as: "echo" }).opened; s.send(Buffer.alloc(0)); await s.came(1); s.close(1000); return s.over; },
  async "echo of 1 MiB"(at, name) { const s = await connect(at, name, { as: "echo" }).opened; s.send("x".repeat(1 << 20)); await s.came(1); s.close(1000); return s.over; },
  async "echo of fragments"(at, name) { const s = await connect(at, name, { as: "echo" }).opened; s.send("frag", { fin: false }); s.send("ments", { fin: true }); await s.came(1); s.close(1000); return s.over; },
  async "order of an echo"(at, name) { const s = await connect(at, name, { as: "echo" }).opened; for (let i = 0; i < 20; i++) s.send(String(i)); await s.came(20); s.close(1000); return s.over; },
  async "binary message"(at, name) { const s = await connect(at, name, { as: "kinds" }).opened; s.send(Buffer.from([1, 2])); await s.came(1); s.close(1000); return s.over; },
  async "binary message as a buffer"(at, name) { const s = await connect(at, name, { as: "buffers" }).opened; s.send(Buffer.from([1, 2])); await s.came(1); s.close(1000); return s.over; },
  async "sent before the response"(at, name) { const s = connect(at, name, { as: "early" }); await s.came(2); s.close(1000); return s.over; },
  async "closed before the response"(at, name) { return connect(at, name, { as: "early close" }).over; },
  async "what send takes"(at, name) { const s = connect(at, name, { as: "types" }); await s.came(8); s.close(1000); return s.over; },
  async "send after a close"(at, name) { const s = await connect(at, name, { as: "close and send" }).opened; s.send("x"); return s.over; },
  async "a listener rejects"(at, name) { const s = await connect(at, name, { as: "rejects once" }).opened; s.send("1"); s.send("2"); await s.came(1); s.close(1000); return s.over; },
  async "close answered by hand"(at, name) { const s = await connect(at, name, { as: "answers" }).opened; s.close(4001, "mine"); return s.over; },
  async "send in a listener of close"(at, name) { const s = await connect(at, name, { as: "late" }).opened; s.close(4001, "mine"); return s.over; },
  async "message before a close"(at, name) { const s = await connect(at, name, { as: "kinds" }).opened; s.send("x"); await s.came(1); s.send("y"); s.close(4001, "mine"); await s.over; return "closed"; },
  async "lost connection"(at, name) { const s = await connect(at, name).opened; s.terminate(); await s.over; return "terminated"; },
  async "ping"(at, name) { const s = await connect(at, name).opened; const pong = new Promise((done) => { s.once("pong", (data) => done(String(data))); }); s.ping("are you there"); const got = await pong; s.close(1000); return [got, await s.over]; },
  async "refused"(at, name) { return (await connect(at, name).over).slice(0, 1); },
  async "protocol v2"(at, name) { const s = await connect(at, name, { protocols: ["v1", "v2"] }).opened; const { protocol } = s; s.close(1000); await s.over; return protocol; },
  async "no protocol"(at, name) { const s = await connect(at, name).opened; const { protocol } = s; s.close(1000); await s.over; return protocol; },
  async "headers of the response"(at, name) { const s = await connect(at, name).opened; const { statusCode, headers } = s.response; s.close(1000); await s.over; return [statusCode, headers["x-own"], headers.upgrade?.toLowerCase()]; },
  async "cookie"(at, name) { const s = await connect(at, name).opened; const { headers } = s.response; s.close(1000); await s.over; return headers["set-cookie"]; },
};
for (const [kind, args] of Object.entries({ "no code": [], 1000: [1000], "1000 and a reason": [1000, "done"], 1001: [1001, "away"], 1008: [1008, "é€"], 1011: [1011], 3000: [3000, "x"], 4999: [4999, "x".repeat(123)] })) {
  cases[`client closes with ${kind}`] = async (at, name) => { const s = await connect(at, name).opened; s.close(...args); return s.over; };
}
for (const as of ["close", "close 1000", "close 1001", "close 1011", "close 3000", "close reason"]) {
  cases[`worker ${as}`] = async (at, name) => { const s = await connect(at, name, { as }).opened; s.send("x"); return s.over; };
}

const within = (promise) => Promise.race([promise, new Promise((done) => setTimeout(() => done("no answer"), 30_000).unref())]);

// sockets returns what the client and the worker at an address saw, by the name of the case.
export async function sockets(at) {
  const all = {};
  await Promise.all(Object.entries(cases).map(async ([name, run]) => {
    const client = await within(run(at, name));
    const record = async () => (await fetch(`${at}/record?name=${encodeURIComponent(name)}${name === "refused" ? "" : "&ended"}`)).json();
    all[name] = { client, worker: await within(record()) };
  }));
  const plain = await fetch(`${at}/talk`);
  all["no upgrade"] = [plain.status, await plain.text()];
  return all;
}

// A refused WebSocket keeps its connection until the server closes it: nobody waits for that.
if (process.argv[1].endsWith("sockets.mjs")) process.stdout.write(JSON.stringify(await sockets(process.argv[2])), () => process.exit());
