// @mode persistent
// Answers 429 to a client that calls more than 10 times a second. All events of this worker run in one context of each
// process, so that they share `buckets`; it is gone when the process is, which is fine for a rate limit.

const RATE = 10;

export default {
  fetch(request) {
    const buckets = (shared.buckets ??= new Map());
    const client = request.headers.get("x-client") ?? "anonymous";
    const now = Date.now();
    const bucket = buckets.get(client) ?? { tokens: RATE, at: now };
    bucket.tokens = Math.min(RATE, bucket.tokens + ((now - bucket.at) / 1000) * RATE);
    bucket.at = now;
    buckets.set(client, bucket);
    if (bucket.tokens < 1) {
      const wait = Math.ceil((1 - bucket.tokens) / RATE);
      return Response.json({ error: "too many requests" }, { status: 429, headers: { "retry-after": String(wait) } });
    }
    bucket.tokens--;
    return Response.json({ left: Math.floor(bucket.tokens) });
  },

  onTerminate() {
    console.log(`forgets ${shared.buckets?.size ?? 0} clients`);
  },
};

// Clients that have been quiet for long are forgotten: a timer of the module goes on between events.
setInterval(() => {
  for (const [client, bucket] of shared.buckets ?? []) {
    if (Date.now() - bucket.at > 60_000) shared.buckets.delete(client);
  }
}, 10_000);
