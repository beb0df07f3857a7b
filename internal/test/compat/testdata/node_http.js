// node:http and node:dns in Cloudflare's workerd, in Node and in Pinwheel, as far as they need no network. A case has the
// name of its list and its number in it.
import dns from "node:dns";
import dnsPromises from "node:dns/promises";
import http from "node:http";
import https from "node:https";

// show makes JSON of a result. Messages of errors are each runtime's own.
function show(v) {
  if (v instanceof Error) return { error: v.name, code: v.code };
  if (v === undefined) return "undefined";
  if (typeof v === "function") return `function ${v.name}`;
  if (Array.isArray(v)) return v.map(show);
  return v;
}

const names = ["a", "A-b", "", "a b", "ä", "a:", "__proto__", "a\n", 5, undefined, null, {}];
const texts = ["a", "", "a\tb", "a\nb", "a\r", "a\0", "ü", "€", 5, undefined, null, ["a", "b"], true];
const made = () => new http.ServerResponse({ method: "GET", httpVersionMajor: 1, httpVersionMinor: 1, headers: {} });
const set = (...pairs) => {
  const m = made();
  for (const [name, value] of pairs) m.setHeader(name, value);
  return m;
};
const codeOf = (f) => { try { f(); return "none"; } catch (e) { return e.code ?? e.name; } };
const requests = ["nope", "ftp://x", { protocol: "https:" }, { method: "a b" }, { method: 5 }, { path: "/a b" }, { path: "/ä€" }, { host: 5 }, { hostname: {} }, { headers: { "a b": 1 } }, { headers: { a: "b\r\nc" } }, { headers: { a: undefined } }, { agent: 5 }, { agent: {} }, { timeout: "x" }];

const lists = {
  "names": names.map((n) => () => http.validateHeaderName(n)),
  "labels": [() => http.validateHeaderName("a b", "Label")],
  "values": texts.map((v) => () => http.validateHeaderValue("x", v)),
  "constants": [() => http.METHODS.length > 30, () => ["GET", "PURGE", "M-SEARCH"].map((m) => http.METHODS.includes(m)), () => http.STATUS_CODES, () => http.maxHeaderSize > 0],
  "headers": [
    () => set(["A", "b"]).getHeader("a"), () => set(["A", 5]).getHeader("A"), () => set(["A", ["b", "c"]]).getHeader("a"), () => set(["A", "b"], ["a", "c"]).getHeaders(),
    () => set(["A", "b"], ["C", "d"]).getHeaderNames(), () => set(["A", "b"]).getRawHeaderNames(), () => set(["A", "b"]).hasHeader("a"), () => set().hasHeader("a"), () => { const m = set(["A", "b"]); m.removeHeader("a"); return m.getHeaders(); },
    () => set(["A", "b"]).appendHeader("a", "c").getHeader("a"), () => set().appendHeader("a", ["b", "c"]).getHeader("a"), () => set(["a", ["x"]]).appendHeader("a", "y").getHeader("a"), () => set().appendHeader("a", "y").getHeader("a"),
    () => set().setHeaders(new Headers({ a: "b", c: "d" })).getHeaders(), () => set().setHeaders(new Map([["a", "b"]])).getHeaders(), () => set().setHeaders({}), () => set().setHeaders(5), () => set().getHeader(5), () => set().hasHeader(), () => set().removeHeader({}),
    () => Object.getPrototypeOf(set(["a", "b"]).getHeaders()), () => set(["__proto__", "b"]).getHeaderNames(), () => set().headersSent, () => set().statusCode, () => set().getHeaders(),
  ],
  "wrong headers": names.map((n) => () => set([n, "x"]).getHeaderNames()),
  "wrong values": texts.map((v) => () => set(["x", v]).getHeader("x")),
  "writeHead": [200, 404, 0, 99, 1000, "200", "x", NaN, undefined, 200.5, -1].map((s) => () => made().writeHead(s).statusCode),
  "writeHead more": [
    () => made().writeHead(200).headersSent, () => { const m = made(); m.writeHead(200); return m.writeHead(200); }, () => { const m = made(); m.writeHead(200); return m.setHeader("a", "b"); }, () => { const m = made(); m.writeHead(200); return m.removeHeader("a"); }, () => { const m = made(); m.writeHead(200); return m.appendHeader("a", "b"); },
    () => made().writeHead(404).statusMessage, () => made().writeHead(299).statusMessage, () => made().writeHead(200, "Fine").statusMessage, () => made().writeHead(200, "a\nb"), () => made().writeHead(200, { "a b": 1 }), () => { const m = made(); m.statusMessage = "own"; m.writeHead(200); return m.statusMessage; },
    () => set(["a", "b"]).writeHead(200, { c: "d" }).getHeaders(), () => set(["a", "b"]).writeHead(200, "x", { a: "d" }).getHeader("a"),
  ],
  "requests": requests.map((r) => () => codeOf(() => http.request(r).on("error", () => {}).destroy())),
  "requests of https": [() => codeOf(() => https.request("http://x.test").on("error", () => {}).destroy()), () => codeOf(() => https.request({ protocol: "http:" }).on("error", () => {}).destroy())],
  "request": [
    () => { const r = http.request("http://a.test:81/b?c=d", { headers: { X: "y" }, method: "post" }).on("error", () => {}); const out = [r.method, r.path, r.host, r.protocol, r.getHeader("host"), r.getHeader("x"), r.aborted, r.destroyed, r.writable]; r.destroy(); return out; },
    () => { const r = http.request({ host: "a.test", auth: "u:p" }).on("error", () => {}); const out = [r.method, r.path, r.getHeader("authorization"), r.getHeader("host")]; r.destroy(); return out; },
    () => { const r = http.request(new URL("http://u:p@a.test/x")).on("error", () => {}); const out = [r.path, r.getHeader("authorization")]; r.destroy(); return out; },
    () => new Promise((ok) => { const r = http.request("http://a.test"); r.on("error", (e) => ok([e.code, e.message, r.destroyed])); r.destroy(); }),
    () => new Promise((ok) => { const r = http.request("http://a.test"); r.on("error", (e) => ok(e.message)); r.destroy(new Error("mine")); }),
  ],
  "agents": [() => new http.Agent().maxSockets === Infinity, () => new http.Agent({ keepAlive: true }).keepAlive, () => http.globalAgent instanceof http.Agent, () => https.globalAgent instanceof http.Agent, () => https.globalAgent.protocol, () => new https.Agent().defaultPort, () => typeof http.Agent().destroy],
  "servers": [() => http.createServer().listening, () => http.createServer().address(), () => http.createServer(5), () => http.createServer().listen(99999), () => typeof http.createServer().close, () => http.createServer(() => {}).listenerCount("request"), () => http.Server() instanceof http.Server, () => new http.IncomingMessage().headers, () => new http.IncomingMessage(null).complete, () => http.IncomingMessage.name, () => new http.OutgoingMessage().headersSent],
  "dns": [
    () => dns.promises === dnsPromises, () => dns.getDefaultResultOrder(), () => dns.setDefaultResultOrder("x"), () => dns.lookup("a"), () => dns.lookup(5, () => {}), () => dns.lookup("a", { family: 5 }, () => {}), () => dns.lookup("a", { all: 5 }, () => {}), () => dns.lookup("a", "x", () => {}), () => dns.lookup("a", { order: "x" }, () => {}),
    () => dns.resolve4(5, () => {}), () => dns.resolve4("a"), () => dns.resolve("a", 5, () => {}), () => dns.resolve("a", "FOO", () => {}), () => dns.NOTFOUND, () => dns.ADDRCONFIG,
  ],
};

export default {
  async fetch() {
    const all = {};
    for (const [name, calls] of Object.entries(lists)) {
      for (let i = 0; i < calls.length; i++) {
        try {
          all[`${name} ${i}`] = show(await Promise.race([calls[i](), new Promise((ok) => setTimeout(ok, 3000, "no answer"))]));
        } catch (e) {
          all[`${name} ${i}`] = show(e);
        }
      }
    }
    return Response.json(all);
  },
};
