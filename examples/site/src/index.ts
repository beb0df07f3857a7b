// A shop: an API made with Hono, beside the pages in public. All of it is below /shop (http.base).
import { Hono } from "hono";

const products = [
  { id: "wheel", name: "Pinwheel", price: 4 },
  { id: "kite", name: "Kite", price: 9 },
  { id: "vane", name: "Weather vane", price: 30 },
];

const app = new Hono();

app.get("/api/products", (c) => c.json(products));

app.get("/api/products/:id", (c) => {
  const product = products.find((p) => p.id === c.req.param("id"));
  return product ? c.json(product) : c.json({ error: "there is no such product" }, 404);
});

// The body is read as it comes, so it may be larger than memory.
app.post("/api/upload", async (c) => {
  let bytes = 0;
  for await (const part of c.req.raw.body ?? []) bytes += part.length;
  return c.json({ bytes });
});

// Server-sent events, until the browser goes.
app.get("/api/clock", (c) => {
  const encoder = new TextEncoder();
  let timer: ReturnType<typeof setInterval>;
  let n = 0;
  const body = new ReadableStream({
    start(controller) {
      const tell = () => controller.enqueue(encoder.encode(`id: ${++n}\ndata: ${new Date().toISOString()}\n\n`));
      tell();
      timer = setInterval(tell, 1000);
    },
    cancel() { clearInterval(timer); },
  });
  return new Response(body, { headers: { "content-type": "text/event-stream", "cache-control": "no-store" } });
});

// The chat has the browsers that this context serves.
const members = new Set<WebSocket>();

app.get("/api/chat", (c) => {
  if (c.req.header("upgrade") !== "websocket") return c.text("a WebSocket is expected", 426);
  const [client, server] = Object.values(new WebSocketPair());
  server.accept();
  members.add(server);
  server.addEventListener("message", ({ data }) => {
    if (typeof data !== "string" || data.length > 500) return;
    for (const m of members) if (m.readyState === WebSocket.OPEN) m.send(data);
  });
  server.addEventListener("close", () => members.delete(server));
  return new Response(null, { status: 101, webSocket: client });
});

export default app;
