// options whose getters call the binding again
// outcome: exception, cpu, memory

export default {
  async fetch(request, env) {
    const put = () => env.KV.put("k", "v", { get metadata() { put(); return 1; } });
    await put();
    return new Response("ok");
  },
};
