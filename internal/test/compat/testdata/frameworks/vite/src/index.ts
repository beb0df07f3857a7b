import { WorkerEntrypoint, env, waitUntil } from "cloudflare:workers";

const answers: Record<string, (w: Vite, request: Request) => unknown> = {
  greet: (w) => w.env.GREETER.greet("Ada"),
  web: async (w, request) => (await w.env.WEB.fetch(request)).text(),
  own: (w) => w.ctx.exports.Own.double(21),
  version: () => typeof env.VERSION.id,
  file: async (w, request) => (await w.env.ASSETS.fetch(new URL("/file.txt", request.url))).text(),
  send: async (w) => {
    await w.env.JOBS.sendBatch([{ body: "a" }, { body: "b" }]);
    waitUntil(env.NOTES.put("sent", "yes"));
    return "sent";
  },
  jobs: async (w) => {
    const { objects } = await w.env.FILES.list({ prefix: "jobs/" });
    return objects.map((o: { key: string }) => o.key).join();
  },
};

export default class Vite extends WorkerEntrypoint {
  async fetch(request: Request) {
    const answer = answers[new URL(request.url).pathname.slice("/api/".length)];
    return answer ? Response.json(await answer(this, request)) : new Response("no such answer", { status: 404 });
  }

  async queue(batch: MessageBatch<string>) {
    for (const message of batch.messages) {
      await this.env.FILES.put("jobs/" + message.body, "done");
    }
  }
}

export class Own extends WorkerEntrypoint {
  double(n: number) {
    return 2 * n;
  }
}
