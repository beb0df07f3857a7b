// node assets.mjs DIRECTORY PATHS RULES REQUESTS: how workerd answers paths with the files of DIRECTORY, for each of the ways
// to write the path of a page, and REQUESTS with the files of RULES, which has _headers and _redirects. PATHS and REQUESTS
// are lists, as JSON. A workerd has one directory, whatever the number of its workers.
import { Miniflare } from "miniflare";

const [directory, paths, rules, requests] = process.argv.slice(2);
const ways = ["auto-trailing-slash", "force-trailing-slash", "drop-trailing-slash", "none"];
const serve = (name, from, html) => ({
  name,
  modules: true,
  script: `export default { fetch: (request, env) => env.ASSETS.fetch(request) }`,
  compatibilityDate: "2026-04-01",
  assets: { directory: from, binding: "ASSETS", assetConfig: { html_handling: html, not_found_handling: "none" }, routerConfig: { has_user_worker: false, invoke_user_worker_ahead_of_assets: false } },
});
const pages = new Miniflare({ workers: ways.map((html) => serve(html, directory, html)) });
const ruled = new Miniflare({ workers: [serve("rules", rules, ways[0])] });
const all = { paths: {}, requests: {} };
try {
  for (const html of ways) {
    const worker = await pages.getWorker(html);
    for (const path of JSON.parse(paths)) {
      const response = await worker.fetch("http://w.test" + path, { redirect: "manual" });
      const location = response.headers.get("location");
      const body = await response.text();
      all.paths[`${html} ${path}`] = [response.status, location ? `> ${location}` : response.ok ? body : ""];
    }
  }
  const worker = await ruled.getWorker("rules");
  for (const request of JSON.parse(requests)) {
    const [method, path, header, value] = request.split(" | ");
    const headers = header ? { [header]: value } : {};
    if (value === "ETAG") headers[header] = (await worker.fetch("http://w.test" + path)).headers.get("etag");
    const response = await worker.fetch("http://w.test" + path, { method, headers, redirect: "manual" });
    all.requests[request] = { status: response.status, headers: Object.fromEntries(response.headers), body: await response.text() };
  }
} finally {
  await Promise.all([pages.dispose(), ruled.dispose()]);
}
process.stdout.write(JSON.stringify(all));
