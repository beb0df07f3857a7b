// What must type-check. The file is deployed and run too.
import hooks, { AsyncLocalStorage as Storage, AsyncResource } from "node:async_hooks";
import text from "./note.txt";

interface Env {
  GREETING: string;
  JOBS: Queue<Job>;
}

interface Job {
  n: number;
}

const user = new AsyncLocalStorage<string>({ name: "user", defaultValue: "nobody" });
const same: Storage<string> = user instanceof hooks.AsyncLocalStorage ? user : new Storage<string>();
const locale = new AsyncContext.Variable({ defaultValue: "en" });

export default {
  routes: {
    "/health": new Response("fine"),
    "/chat": () => {
      const [client, server] = Object.values(new WebSocketPair());
      server.accept();
      server.addEventListener("message", ({ data }) => server.send(data));
      return new Response(null, { status: 101, webSocket: client });
    },
    "/users/:id": {
      GET: (request, env) => Response.json({ id: request.params.id.toUpperCase(), greeting: env.GREETING.length }),
      DELETE: async () => new Response(null, { status: 204 }),
    },
  },

  async fetch(request, env, ctx) {
    ctx.waitUntil(Promise.resolve());
    if (request.method === "POST") {
      await env.JOBS.send({ n: 1 }, { contentType: "json", headers: { "x-a": "b" } });
    }
    new Request("https://a.example", { method: "POST", body: new ReadableStream(), duplex: "half" });
    const url: URL = new URL(request.url);
    const inside: string | undefined = user.run("ada", () => same.getStore());
    const n: number = user.run("x", (a: number, b: number) => a + b, 1, 2);
    return Response.json({ greeting: env.GREETING.toUpperCase(), path: url.pathname, inside, n, text, locale: locale.get() });
  },

  async task(event, env, ctx) {
    const n: number = event.payload.n;
    if (event.attempt > 2) event.noRetry();
    else event.retry({ delaySeconds: 2 });
    shared.hits = (shared.hits ?? 0) + 1;
    const bytes: Uint8Array = await event.bytes();
    const bound = AsyncResource.bind((x: number) => x * 2);
    return {
      success: true,
      data: {
        n: bound(n), bytes: bytes.length, type: event.type, id: typeof event.id, header: event.headers.get("x-none"), greeting: env.GREETING,
        // What the runtime has; the test compares it to what the types say.
        members: { EventInfo: members(event, "type"), Queue: members(env.JOBS), ExecutionContext: members(ctx) },
      },
    } satisfies Result;
  },

  scheduled(event) {
    const at: Date = new Date(event.scheduledTime);
    return {
      at, cron: event.cron.length, type: event.type,
      members: members(event), storage: members(user), variable: members(locale), snapshot: members(new AsyncContext.Snapshot()),
    };
  },

  onIdle(env) {
    console.log(env.GREETING);
  },

  async onTerminate() {
    await new Promise((resolve) => setTimeout(resolve, 1));
  },
} satisfies Handler<Env, Job>;

function members(value: object, ...but: string[]): string[] {
  const names = Object.getOwnPropertyNames(Object.getPrototypeOf(value));
  return names.filter((name) => name !== "constructor" && !but.includes(name)).sort();
}

// Bindings, as Cloudflare's types have them.
export async function bindings(env: { KV: KVNamespace }): Promise<string> {
  await env.KV.put("k", "v", { expirationTtl: 5, metadata: { a: 1 } });
  const value: string | null = await env.KV.get("k");
  const many: Map<string, string | null> = await env.KV.get(["k"]);
  const { metadata } = await env.KV.getWithMetadata<{ a: number }>("k");
  const parsed = await env.KV.get<{ a: number }>("k", "json");
  const page = await env.KV.list({ prefix: "k" });
  const hit: Response | undefined = await caches.default.match("https://w.test/");
  return `${value} ${many.size} ${metadata?.a} ${parsed?.a} ${page.list_complete ? "" : page.cursor} ${hit?.status}`;
}

export const batches = {
  async queue(batch, env, ctx) {
    const failed: { itemIdentifier: string }[] = [];
    for (const message of batch.messages) {
      const n: number = message.body.n + message.attempts + message.timestamp.getTime();
      if (message.headers.has("x-skip")) message.ack();
      else if (n > 1) message.retry({ delaySeconds: 1 });
      else failed.push({ itemIdentifier: message.id });
    }
    if (batch.queue === "" || batch.metadata.metrics.oldestMessageTimestamp < new Date(0)) batch.retryAll();
    ctx.waitUntil(Promise.resolve());
    batch.ackAll();
    return { batchItemFailures: failed };
  },
} satisfies Handler<unknown, { n: number }>;
