// computes for long with each value, while others wait for its thread
// outcome: cpu, memory, exception

export default {
  async fetch(request, env) {
    for (;;) {
      await Promise.allSettled(Array.from({ length: 3 }, async () => {
        await env.KV.get("large", "arrayBuffer");
        for (let i = 0, x = 1; i < 3e7; i++) x ^= i << 3;
      }));
    }
  },
};
