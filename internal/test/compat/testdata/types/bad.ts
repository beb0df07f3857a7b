// Each line with "error" has exactly that; the others have none.
interface Env {
  NAME: string;
  JOBS: Queue<{ n: number }>;
}

export const a = { fetch(request: string) { return new Response(request); } } satisfies Handler<Env>; // error TS2322
export const b = { fetch() { return "text"; } } satisfies Handler<Env>; // error TS2322
export const c = { async fetch() { return { status: 200 }; } } satisfies Handler<Env>; // error TS2322
export const d = { ftch() { return new Response(); } } satisfies Handler<Env>; // error TS2561
export const e = { task(event: ScheduledEvent) { return event.cron; } } satisfies Handler<Env>; // error TS2322
export const f = { scheduled(event) { return event.chron; } } satisfies Handler<Env>; // error TS2551
export const g = { task(event) { return event.payload.m; } } satisfies Handler<Env, { n: number }>; // error TS2339
export const h = { fetch(_, env) { return new Response(env.NAMES); } } satisfies Handler<Env>; // error TS2551
export const i = { async task(_, env) { await env.JOBS.send({ n: "1" }); } } satisfies Handler<Env>; // error TS2322
export const j = { async task(_, env) { await env.JOBS.send({ n: 1 }, { contentType: "xml" }); } } satisfies Handler<Env>; // error TS2322
export const k = { onIdle(env: Env, ctx: ExecutionContext) { ctx.waitUntil(env); } } satisfies Handler<Env>; // error TS2322
export const l = { task(event) { event.attempt = 1; } } satisfies Handler<Env>; // error TS2540
export const m = { fetch: new Response() } satisfies Handler<Env>; // error TS2322
export const n: number = new AsyncLocalStorage<string>().getStore(); // error TS2322
export const o = { fetch: (_r, _e, ctx) => { ctx.waitUntill(1); return new Response(); } } satisfies Handler<Env>; // error TS2551
export const p = { task: (event: TaskEvent, env: Env) => [event.id, env.NAME] } satisfies Handler<Env>;

export const batches = {
  queue(batch) {
    batch.messages[0].acknowledge(); // error TS2339
    batch.messages[0].body = 1; // error TS2540
    batch.retryAll({ delay: 1 }); // error TS2353
  },
} satisfies Handler;
