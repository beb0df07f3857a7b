// node assets.mjs DIRECTORY PATHS: how workerd answers paths with the files of a directory, for each of the ways to write the
// path of a page. PATHS is a list, as JSON.
import { Miniflare } from "miniflare";

const [directory, paths] = process.argv.slice(2);
const all = {};
for (const html of ["auto-trailing-slash", "force-trailing-slash", "drop-trailing-slash", "none"]) {
  const miniflare = new Miniflare({
    modules: true,
    script: `export default { fetch: (request, env) => env.ASSETS.fetch(request) }`,
    compatibilityDate: "2026-04-01",
    assets: { directory, binding: "ASSETS", assetConfig: { html_handling: html, not_found_handling: "none" }, routerConfig: { has_user_worker: false, invoke_user_worker_ahead_of_assets: false } },
  });
  try {
    for (const path of JSON.parse(paths)) {
      const response = await miniflare.dispatchFetch("http://w.test" + path, { redirect: "manual" });
      const location = response.headers.get("location");
      const body = await response.text();
      all[`${html} ${path}`] = `${response.status} ${location ? "> " + location : response.ok ? body : ""}`;
    }
  } finally {
    await miniflare.dispose();
  }
}
process.stdout.write(JSON.stringify(all));
