// node miniflare.mjs MODULE OPTIONS …: what the fetch handler of each module answers in Cloudflare's workerd, as a JSON
// array of texts. OPTIONS are those of a worker of Miniflare, as JSON. One workerd has them all, because its start takes
// longer than an answer. Where the first module is sockets.js, what clients/sockets.mjs sees of it is the last answer.
import { readFileSync } from "node:fs";
import { Miniflare } from "miniflare";

const args = process.argv.slice(2);
const workers = [];
for (let i = 0; i < args.length; i += 2) {
  workers.push({ name: `w${i / 2}`, modules: true, script: readFileSync(args[i], "utf8"), compatibilityDate: "2026-04-01", ...JSON.parse(args[i + 1]) });
}
const miniflare = new Miniflare({ cf: true, workers });
try {
  const { origin } = await miniflare.ready;
  const answers = await Promise.all(workers.map(async ({ name }, i) => {
    const response = i === 0 ? await miniflare.dispatchFetch("http://w.test/") : await (await miniflare.getWorker(name)).fetch("http://w.test/");
    return response.text();
  }));
  if (args[0].endsWith("sockets.js")) {
    const { sockets } = await import("./clients/sockets.mjs");
    answers.push(JSON.stringify(await sockets(origin)));
  }
  process.stdout.write(JSON.stringify(answers));
} finally {
  await miniflare.dispose();
}
