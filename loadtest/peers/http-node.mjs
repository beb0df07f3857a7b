// Runs a file of ../workers behind node:http: a Request and a Response for each request.
import { createServer } from "node:http";

const { default: handler } = await import(`../workers/${process.env.HANDLER}.mjs`);

createServer(async (incoming, outgoing) => {
  try {
    const chunks = [];
    for await (const chunk of incoming) chunks.push(chunk);
    const body = incoming.method === "GET" || incoming.method === "HEAD" ? undefined : Buffer.concat(chunks);
    const url = `http://${incoming.headers.host}${incoming.url}`;
    const response = await handler.fetch(new Request(url, { method: incoming.method, headers: incoming.headers, body }));
    const answer = Buffer.from(await response.arrayBuffer());
    outgoing.writeHead(response.status, { ...Object.fromEntries(response.headers), "content-length": answer.length });
    outgoing.end(answer);
  } catch (error) {
    console.error(error);
    outgoing.writeHead(500, { "content-length": 0 });
    outgoing.end();
  }
}).listen(Number(process.env.PORT), "127.0.0.1");
