// gets a million keys at once, of an array that is none
// outcome: ok

export default {
  async fetch(request, env) {
    const keys = new Proxy([], { get: (target, name) => (name === "length" ? 1e6 : "k") });
    const refused = [];
    for (const given of [keys, Object.assign([], { length: 4294967295 }), new Array(101)]) {
      await env.KV.get(given).catch((e) => refused.push(e.message));
    }
    if (refused.length !== 3) throw new Error(`${refused.length} refused`);
    return new Response("ok");
  },
};
