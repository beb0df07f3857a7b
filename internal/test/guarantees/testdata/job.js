// Does what the event says, and tells the test of each run and of each end of one.
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

async function act(env, ctx, { id, what }, attempt, event) {
  const tell = (fact) => fetch(`${env.TEST}/${fact}?id=${id}&attempt=${attempt}`).then((r) => r.text());
  await tell("ran");
  switch (what) {
    case "ok": break;
    case "slow": await sleep(50 + 250 * Math.random()); break;
    case "long": await sleep(1500); break;
    case "late": ctx.waitUntil(sleep(150).then(() => tell("done"))); return;
    case "throw": throw new Error("no");
    case "flaky": if (attempt < 2) throw new Error("not yet"); break;
    case "noretry": event.noRetry(); throw new Error("never");
    case "retry": if (attempt < 2) return event.retry({ delaySeconds: 0.2 }); break;
    case "cpu": for (;;);
    case "memory": for (const a = []; ;) a.push(new Array(1e6).fill(1.5));
    case "timeout": await new Promise(() => setInterval(() => {}, 50));
  }
  await tell("done");
}

export default {
  async fetch(request, env, ctx) {
    const order = await request.json();
    await act(env, ctx, order, 0);
    return Response.json({ id: order.id });
  },
  async task(event, env, ctx) {
    await act(env, ctx, event.payload, event.attempt, event);
    return { id: event.payload.id };
  },
  async scheduled(event, env, ctx) {
    await act(env, ctx, event.payload, event.attempt, event);
    return { id: event.payload.id };
  },
};
