// A server of node:http writes without end, and heeds nobody.
// outcome: timeout, memory, cpu, ok
import { builtin } from "pinwheel:node";

const { httpServerHandler } = builtin("cloudflare:node");
builtin("http").createServer((req, res) => {
  const more = () => {
    for (let i = 0; i < 100; i++) res.write("x".repeat(10_000));
    setTimeout(more);
  };
  more();
}).listen(1);

export default httpServerHandler({ port: 1 });
