// Runs ../workers/calls.mjs in miniflare: Cloudflare's workerd, with miniflare's KV.
import { readFileSync } from "node:fs";
import { Miniflare } from "miniflare";

const script = readFileSync(new URL("../workers/calls.mjs", import.meta.url), "utf8");
const miniflare = new Miniflare({
  name: "calls",
  modules: true,
  script,
  compatibilityDate: "2026-04-01",
  host: "127.0.0.1",
  port: Number(process.env.PORT),
  kvNamespaces: ["KV"],
  serviceBindings: { SELF: "calls", METHODS: { name: "calls", entrypoint: "Methods" } },
});
await miniflare.ready;
process.on("SIGTERM", () => miniflare.dispose().then(() => process.exit(0)));
