// stores a stream that never ends
// outcome: exception, memory, cpu

export default {
  async fetch(request, env) {
    await env.KV.put("k", new ReadableStream({ pull(c) { c.enqueue(new Uint8Array(1 << 16)); } }));
    return new Response("ok");
  },
};
