// The prototypes of everything are changed before a server of node:http answers.
// outcome: ok
import { builtin } from "pinwheel:node";

const http = builtin("http");
const { httpServerHandler } = builtin("cloudflare:node");
http.createServer((req, res) => {
  let touched = "";
  for (const name of ["value", "get", "set", "resolve", "reject", "bytes", "done", "stream", "source", "host", "cookie", "then"]) {
    for (const proto of [Object.prototype, Array.prototype, Map.prototype]) {
      try {
        Object.defineProperty(proto, name, { configurable: true, get() { return undefined; }, set() { touched += name; } });
      } catch {}
    }
  }
  Headers.prototype.get = Headers.prototype.set = Map.prototype.forEach = () => { throw new Error("reached"); };
  Response.prototype.constructor = Request.prototype.constructor = null;
  touched = "";
  res.setHeader("a", ["b", "c"]);
  res.writeHead(200, { d: "e" });
  res.write("o");
  setTimeout(() => res.end(touched === "" ? "k" : touched), 1);
}).listen(1);

export default httpServerHandler({ port: 1 });
