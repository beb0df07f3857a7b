// Calls one thing, as often as the URL says, one after the other: GET /KIND/CALLS/NUMBER. The answer has the number, and
// ends with "ok" if every call answered as it must. miniflare runs this very file.

import { WorkerEntrypoint } from "cloudflare:workers";

const value = "v".repeat(1024);

async function direct(i) {
  return i + 1;
}

export class Methods extends WorkerEntrypoint {
  add(i) {
    return i + 1;
  }
}

const kinds = {
  function: async (env, i) => (await direct(i)) === i + 1,
  kv: async (env) => {
    let found = await env.KV.get("value");
    if (found === null) await env.KV.put("value", (found = value));
    return found.length === value.length;
  },
  method: async (env, i) => (await env.METHODS.add(i)) === i + 1,
  fetch: async (env) => (await (await env.SELF.fetch("http://self.test/leaf")).text()) === "leaf",
};

export default {
  async fetch(request, env) {
    const [, kind, calls, number] = new URL(request.url).pathname.split("/");
    if (kind === "leaf") return new Response(kind);
    let good = 0;
    for (let i = 0; i < +calls; i++) good += await kinds[kind](env, i);
    return new Response(`${number} ${good === +calls ? "ok" : "wrong"}`);
  },
};
