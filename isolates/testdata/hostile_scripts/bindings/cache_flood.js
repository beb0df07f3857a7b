// puts large responses into caches of many names, and waits for none
// outcome: cpu, memory

export default {
  async fetch() {
    for (let i = 0; ; i++) {
      const cache = await caches.open(`c${i}`);
      cache.put("https://w.test/", new Response("x".repeat(500_000), { headers: { "Cache-Control": "max-age=60" } })).catch(() => {});
    }
  },
};
