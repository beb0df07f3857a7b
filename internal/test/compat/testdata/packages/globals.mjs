// What packages look for on Cloudflare: the address of the client, and caches that they may set.
import { Hono } from "hono";
import { getConnInfo } from "hono/cloudflare-workers";

const calls = [];

// traced is a proxy of a cache that notes what is called. The methods are bound to what is behind it.
const traced = (cache, name) => new Proxy(cache, {
  get: (target, key) => (typeof target[key] !== "function" ? target[key] : new Proxy(target[key].bind(target), {
    apply(call, self, args) {
      calls.push(`${name} ${key}`);
      return Reflect.apply(call, self, args);
    },
  })),
});

globalThis.caches = new Proxy(caches, {
  get: (target, key) => (key === "default" ? traced(target.default, "default") : key === "open" ? async (name) => traced(await target.open(name), name) : target[key]),
});

export default new Hono()
  .get("/connection", (c) => c.json(getConnInfo(c)))
  .get("/caches", async (c) => {
    calls.length = 0;
    const mine = await caches.open("mine"), key = "http://cache.test/a";
    const response = () => new Response("cached", { headers: { "cache-control": "max-age=60" } });
    await caches.default.put(key, response());
    const got = await caches.default.match(key);
    await mine.put(key, response());
    const gone = await mine.delete(new Request(key));
    return c.json([calls, await got.text(), gone]);
  });
