// node miniflare.mjs MODULE OPTIONS: what a module's fetch handler answers in Cloudflare's workerd. OPTIONS are those of
// Miniflare, as JSON.
import { readFileSync } from "node:fs";
import { Miniflare } from "miniflare";

const [module, options] = process.argv.slice(2);
const miniflare = new Miniflare({ modules: true, script: readFileSync(module, "utf8"), compatibilityDate: "2026-04-01", ...JSON.parse(options) });
try {
  const response = await miniflare.dispatchFetch("http://w.test/");
  process.stdout.write(await response.text());
} finally {
  await miniflare.dispose();
}
