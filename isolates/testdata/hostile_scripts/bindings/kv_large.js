// asks for more values at once than the memory of the run has room for
// outcome: ok, memory, exception, cpu

export default {
  async fetch(request, env) {
    const kept = [];
    const results = await Promise.allSettled(Array.from({ length: 100 }, async (_, i) => { kept.push(await env.KV.get(`large${i}`, "arrayBuffer")); }));
    if (results.every((r) => r.status === "fulfilled")) throw new Error("none was refused");
    return new Response("ok");
  },
};
