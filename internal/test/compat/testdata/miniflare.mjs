// node miniflare.mjs MODULE OPTIONS …: what the fetch handler of each module answers in Cloudflare's workerd, as a JSON
// array of texts. OPTIONS are those of Miniflare, as JSON. Each module has a workerd of its own.
import { readFileSync } from "node:fs";
import { Miniflare } from "miniflare";

const answers = [];
const args = process.argv.slice(2);
for (let i = 0; i < args.length; i += 2) {
  const [module, options] = args.slice(i, i + 2);
  const miniflare = new Miniflare({ modules: true, script: readFileSync(module, "utf8"), compatibilityDate: "2026-04-01", ...JSON.parse(options) });
  try {
    const response = await miniflare.dispatchFetch("http://w.test/");
    answers.push(await response.text());
  } finally {
    await miniflare.dispose();
  }
}
process.stdout.write(JSON.stringify(answers));
