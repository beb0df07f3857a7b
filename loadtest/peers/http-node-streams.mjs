// Runs a file of ../workers behind node:http, like http-node.mjs, and keeps bodies as streams.
import { createServer } from "node:http";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";

const { default: handler } = await import(`../workers/${process.env.HANDLER}.mjs`);

createServer(async (incoming, outgoing) => {
  try {
    const url = `http://${incoming.headers.host}${incoming.url}`;
    const body = Readable.toWeb(incoming);
    const response = await handler.fetch(new Request(url, { method: incoming.method, headers: incoming.headers, body, duplex: "half" }));
    outgoing.writeHead(response.status, Object.fromEntries(response.headers));
    await pipeline(Readable.fromWeb(response.body), outgoing);
  } catch (error) {
    console.error(error);
    outgoing.destroy();
  }
}).listen(Number(process.env.PORT), "127.0.0.1");
