// A response of node:http with a million headers, and values that change when they are read again.
// outcome: exception, cpu, memory
import { builtin } from "pinwheel:node";

const { httpServerHandler } = builtin("cloudflare:node");
builtin("http").createServer((req, res) => {
  let n = 0;
  for (let i = 0; i < 1_000_000; i++) res.appendHeader("a", { toString: () => (n++ % 2 === 0 ? "b" : "b\r\nc: d") });
  res.end();
}).listen(1);

export default httpServerHandler({ port: 1 });
